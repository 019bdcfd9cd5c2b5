"""Remedies for a run of the training program that does not fit: the smallest changes, of several kinds."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

from trainmaster.core.memory.footprint import Cluster, estimate
from trainmaster.core.memory.training_runs import ActivationCheckpointing, Precision, Run, Strategy

MOST_HOSTS = 128
"""Most hosts that the search for a remedy tries."""

Fields = dict[str, Any]
"""Fields of a Run, with new values."""
Change = tuple[str, ...]
"""A change in words, one for each option."""


def remedy(run: Run, cluster: Cluster) -> str | None:
    """Return the mildest change after which it fits; None if there is none of a known kind."""
    return next(iter(remedies(run, cluster)), None)


def remedies(run: Run, cluster: Cluster) -> tuple[str, ...]:
    """Return the smallest change of each kind after which it fits, the mildest kind first.

    The kinds: other options, as few of them as possible; more instances; all in bf16; state in the host's
    memory.
    """
    costly: list[tuple[str, Fields]] = []
    if run.precision is not Precision.BF16_PURE:
        costly.append(("precision bf16_pure", {"precision": Precision.BF16_PURE}))
    if not run.cpu_offload and cluster.host_memory_bytes is not None:
        costly.append(("cpu_offload true", {"cpu_offload": True}))
    changes = (
        _first_that_fits(_changed(run, cluster), cluster),
        _more_instances(run, cluster),
        *(_first_that_fits(_with(text, fields, run, cluster), cluster) for text, fields in costly),
    )
    return tuple(_in_words(change) for change in _without_idle_additions(changes))


def _without_idle_additions(changes: Iterable[Change | None]) -> list[Change]:
    """Drop changes that contain a milder one, as that suffices alone."""
    kept: list[Change] = []
    for change in changes:
        if change is not None and not any(set(milder) <= set(change) for milder in kept):
            kept.append(change)
    return kept


def _in_words(change: Change) -> str:
    first, *others = change
    between = " with " if first.endswith("instances") else " and "
    return first + (between + " and ".join(others) if others else "")


def _first_that_fits(candidates: Iterator[tuple[Change, Run]], cluster: Cluster) -> Change | None:
    return next((change for change, run in candidates if estimate(run, cluster).fits), None)


def _with(text: str, fields: Fields, run: Run, cluster: Cluster) -> Iterator[tuple[Change, Run]]:
    """Yield this change alone, then with others beside it."""
    for others, changed in (((), run), *_changed(run, cluster)):
        costlier = replace(changed, **fields)
        if not (costlier.cpu_offload and costlier.strategy is Strategy.NO_SHARD):  # the program refuses that
            yield (text, *others), costlier


def _more_instances(run: Run, cluster: Cluster) -> Change | None:
    for hosts in range(cluster.hosts + 1, MOST_HOSTS + 1):
        wider = replace(cluster, hosts=hosts)
        shared, batch = _shared_by_all(run, wider)
        for change, changed in (((), shared), *_changed(shared, wider)):
            if estimate(changed, wider).fits:
                return (f"{hosts} instances", *batch, *change)
    return None


def _shared_by_all(run: Run, cluster: Cluster) -> tuple[Run, Change]:
    """Round the batch up so that the ranks can share it evenly, as the program requires."""
    parts = cluster.world_size * run.accumulation
    size = -(-run.batch_size // parts) * parts
    return replace(run, batch_size=size), (f"batch_size {size}",) if size != run.batch_size else ()


def _changed(run: Run, cluster: Cluster) -> Iterator[tuple[Change, Run]]:
    """Yield the run with other hyperparameters, with as few of them as possible first."""
    useful = [(text, fields) for text, fields in _changes(run, cluster) if replace(run, **fields) != run]
    for size in range(1, len(useful) + 1):
        for chosen in combinations(useful, size):
            fields = {name: value for _, changes in chosen for name, value in changes.items()}
            yield tuple(text for text, _ in chosen), replace(run, **fields)


def _changes(run: Run, cluster: Cluster) -> Iterator[tuple[str, Fields]]:
    for setting in (ActivationCheckpointing.SELECTIVE, ActivationCheckpointing.FULL):
        if run.activation_checkpointing is not ActivationCheckpointing.FULL:
            yield f"activation_checkpointing {setting}", {"activation_checkpointing": setting}
    dropped = " without shard_group_size" if run.shard_group_size else ""
    fields = {"strategy": Strategy.FULL_SHARD, "shard_group_size": 0}
    yield f"strategy {Strategy.FULL_SHARD}{dropped}", fields
    parts, left = divmod(run.batch_size, cluster.world_size)
    if not left and parts > run.accumulation:
        yield f"gradient_accumulation_steps {parts}", {"accumulation": parts}
    elif left:
        least = cluster.world_size * run.accumulation
        yield f"batch_size {least}", {"batch_size": min(run.batch_size, least)}
