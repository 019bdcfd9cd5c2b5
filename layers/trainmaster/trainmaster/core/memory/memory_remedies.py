"""What would let a run of the training program fit that does not: the smallest changes, of several kinds."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

from trainmaster.core.memory.footprint import Cluster, estimate
from trainmaster.core.memory.training_runs import ActivationCheckpointing, Precision, Run, Strategy

MOST_HOSTS = 128
"""As far as the search for what would do goes."""

Fields = dict[str, Any]
"""Of a Run, with new values."""
Change = tuple[str, ...]
"""In words, one for each option."""


def remedy(run: Run, cluster: Cluster) -> str | None:
    """The mildest change after which it fits; None: nothing of that kind would do."""
    return next(iter(remedies(run, cluster)), None)


def remedies(run: Run, cluster: Cluster) -> tuple[str, ...]:
    """The smallest change of each kind that would do, the mildest kind first.

    Other options, with as few of them as possible; more instances; all in bf16; state in the host's memory.
    """
    dear: list[tuple[str, Fields]] = []
    if run.precision is not Precision.BF16_PURE:
        dear.append(("precision bf16_pure", {"precision": Precision.BF16_PURE}))
    if not run.cpu_offload and cluster.host_memory_bytes is not None:
        dear.append(("cpu_offload true", {"cpu_offload": True}))
    found = (
        _first_that_fits(_changed(run, cluster), cluster),
        _more_instances(run, cluster),
        *(_first_that_fits(_with(text, fields, run, cluster), cluster) for text, fields in dear),
    )
    return tuple(_in_words(change) for change in _without_idle_additions(found))


def _without_idle_additions(found: Iterable[Change | None]) -> list[Change]:
    """None that contains a milder one, which does alone."""
    kept: list[Change] = []
    for change in found:
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
    """This change alone, then with others beside it."""
    for more, changed in (((), run), *_changed(run, cluster)):
        dearer = replace(changed, **fields)
        if not (dearer.cpu_offload and dearer.strategy is Strategy.NO_SHARD):  # the program refuses that
            yield (text, *more), dearer


def _more_instances(run: Run, cluster: Cluster) -> Change | None:
    for hosts in range(cluster.hosts + 1, MOST_HOSTS + 1):
        wider = replace(cluster, hosts=hosts)
        shared, batch = _shared_by_all(run, wider)
        for change, changed in (((), shared), *_changed(shared, wider)):
            if estimate(changed, wider).fits:
                return (f"{hosts} instances", *batch, *change)
    return None


def _shared_by_all(run: Run, cluster: Cluster) -> tuple[Run, Change]:
    """With a batch that the ranks can share, which the program asks for."""
    parts = cluster.world_size * run.accumulation
    size = -(-run.batch_size // parts) * parts
    return replace(run, batch_size=size), (f"batch_size {size}",) if size != run.batch_size else ()


def _changed(run: Run, cluster: Cluster) -> Iterator[tuple[Change, Run]]:
    """The run with other hyperparameters, with as few of them as possible first."""
    useful = [(text, fields) for text, fields in _changes(run, cluster) if replace(run, **fields) != run]
    for size in range(1, len(useful) + 1):
        for chosen in combinations(useful, size):
            fields = {name: value for _, changes in chosen for name, value in changes.items()}
            yield tuple(text for text, _ in chosen), replace(run, **fields)


def _changes(run: Run, cluster: Cluster) -> Iterator[tuple[str, Fields]]:
    for one in (ActivationCheckpointing.SELECTIVE, ActivationCheckpointing.FULL):
        if run.activation_checkpointing is not ActivationCheckpointing.FULL:
            yield f"activation_checkpointing {one}", {"activation_checkpointing": one}
    dropped = " without shard_group_size" if run.shard_group_size else ""
    fields = {"strategy": Strategy.FULL_SHARD, "shard_group_size": 0}
    yield f"strategy {Strategy.FULL_SHARD}{dropped}", fields
    parts, left = divmod(run.batch_size, cluster.world_size)
    if not left and parts > run.accumulation:
        yield f"gradient_accumulation_steps {parts}", {"accumulation": parts}
    elif left:
        least = cluster.world_size * run.accumulation
        yield f"batch_size {least}", {"batch_size": min(run.batch_size, least)}
