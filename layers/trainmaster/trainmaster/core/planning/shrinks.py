"""Shrinks: elastic victims give up only what is lacking, and come back at once with the rest."""

from collections.abc import Iterable, Mapping

from trainmaster.core.jobs.instances import Capacity, Vector, total
from trainmaster.core.planning.capacity import minus, take
from trainmaster.core.planning.snapshot import RunningJob


def kept_of(victims: Iterable[RunningJob], short: Vector) -> Mapping[str, Vector]:
    """Return what elastic victims keep of their instances, by name, while all free what is lacking.

    Each keeps the largest of its widths that the others leave to it, the most valuable victim first. Without
    such a width it stops as a whole.

    Args:
        victims: Jobs that free what is lacking between them, the cheapest to stop first.
        short: Instances that are lacking.
    """
    elastic = [victim for victim in victims if victim.widths is not None]
    if not elastic:
        return {}
    spare = minus(total(victim.vector for victim in victims), short)
    kept: dict[str, Vector] = {}
    for victim in reversed(elastic):
        if (room := _kept(victim, spare)) is not None:
            kept[victim.name] = room
            take(spare, room)
    return kept


def is_enough(job: RunningJob, short: Vector) -> bool:
    """Tell whether a job can free all that is lacking and come back narrower."""
    return job.widths is not None and _kept(job, minus(job.vector, short)) is not None


def _kept(job: RunningJob, spare: Mapping[Capacity, int]) -> Vector | None:
    """Return the most that the job can keep of what is spare; None if that is less than its least width."""
    assert job.widths is not None, job
    ((capacity, held),) = job.vector.items()
    most = min(spare.get(capacity, 0), held - 1)
    width = max((count for count in job.widths.counts if count <= most), default=None)
    return None if width is None else {capacity: width}
