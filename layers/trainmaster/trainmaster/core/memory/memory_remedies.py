"""The smallest changes, of several kinds, that would let a run of the training program fit that does not."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

from trainmaster.core.memory.footprint import Cluster, estimate
from trainmaster.core.memory.program_shapes import ActivationCheckpointing, Precision, Strategy
from trainmaster.core.memory.training_runs import Run

MOST_HOSTS = 128
"""Most hosts that the search for more instances tries."""

Fields = dict[str, Any]
"""New values of fields of a Run."""
Change = tuple[str, ...]
"""A change in words, one text for each option."""


def remedy(run: Run, cluster: Cluster) -> str | None:
    """Return the mildest change after which the run fits; None if no change of these kinds suffices."""
    return next(iter(remedies(run, cluster)), None)


def remedies(run: Run, cluster: Cluster) -> tuple[str, ...]:
    """Return the smallest sufficient change of each kind, the mildest kind first.

    The kinds are: other options, as few as possible; more instances; all in bf16; state in the host's memory.
    """
    dear: list[tuple[str, Fields]] = []
    if run.precision is not Precision.BF16_PURE:
        dear.append(("precision bf16_pure", {"precision": Precision.BF16_PURE}))
    if not run.cpu_offload and cluster.host_memory_bytes is not None:
        dear.append(("cpu_offload true", {"cpu_offload": True}))
    candidates = (
        _first_that_fits(_changed(run, cluster), cluster),
        _more_instances(run, cluster),
        *(_first_that_fits(_with(text, fields, run, cluster), cluster) for text, fields in dear),
    )
    return tuple(_in_words(change) for change in _without_idle_additions(candidates))


def _without_idle_additions(changes: Iterable[Change | None]) -> list[Change]:
    """Drop each change that contains a milder one, since the milder one suffices alone."""
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
    """Yield this change alone, then together with others."""
    for others, changed in (((), run), *_changed(run, cluster)):
        dearer = replace(changed, **fields)
        if not (dearer.cpu_offload and dearer.strategy is Strategy.NO_SHARD):  # the program refuses that
            yield (text, *others), dearer


def _more_instances(run: Run, cluster: Cluster) -> Change | None:
    for hosts in range(cluster.hosts + 1, MOST_HOSTS + 1):
        wider = replace(cluster, hosts=hosts)
        shared, batch = _shared_by_all(run, wider)
        for change, changed in (((), shared), *_changed(shared, wider)):
            if estimate(changed, wider).fits:
                return (f"{hosts} instances", *batch, *change)
    return None


def _shared_by_all(run: Run, cluster: Cluster) -> tuple[Run, Change]:
    """Round the batch up to one that the ranks can share, as the program requires.

    Also return that change in words.
    """
    parts = cluster.world_size * run.accumulation
    size = -(-run.batch_size // parts) * parts
    return replace(run, batch_size=size), (f"batch_size {size}",) if size != run.batch_size else ()


def _changed(run: Run, cluster: Cluster) -> Iterator[tuple[Change, Run]]:
    """Yield the run with other hyperparameters, those with the fewest changes first."""
    useful = [(text, fields) for text, fields in _changes(run, cluster) if replace(run, **fields) != run]
    for size in range(1, len(useful) + 1):
        for chosen in combinations(useful, size):
            fields = {name: value for _, changes in chosen for name, value in changes.items()}
            yield tuple(text for text, _ in chosen), replace(run, **fields)


def _changes(run: Run, cluster: Cluster) -> Iterator[tuple[str, Fields]]:
    for recomputed in (ActivationCheckpointing.SELECTIVE, ActivationCheckpointing.FULL):
        if run.activation_checkpointing is not ActivationCheckpointing.FULL:
            yield f"activation_checkpointing {recomputed}", {"activation_checkpointing": recomputed}
    dropped = " without shard_group_size" if run.shard_group_size else ""
    fields = {"strategy": Strategy.FULL_SHARD, "shard_group_size": 0}
    yield f"strategy {Strategy.FULL_SHARD}{dropped}", fields
    parts, left = divmod(run.batch_size, cluster.world_size)
    if not left and parts > run.accumulation:
        yield f"gradient_accumulation_steps {parts}", {"accumulation": parts}
    elif left:
        least = cluster.world_size * run.accumulation
        yield f"batch_size {least}", {"batch_size": min(run.batch_size, least)}
