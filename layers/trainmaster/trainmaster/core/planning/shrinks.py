"""Shrinks: elastic victims give up only what is lacking, and come back at once with the rest."""

from collections.abc import Iterable, Mapping

from trainmaster.core.jobs.instances import Capacity, Vector, total
from trainmaster.core.planning.capacity import lacking, minus, take
from trainmaster.core.planning.snapshot import RunningJob


def kept_of(victims: Iterable[RunningJob], short: Vector) -> Mapping[str, Vector]:
    """Return what elastic victims keep of their instances, by name, while all free what is lacking.

    First each keeps its least width, if the others leave that, then the largest of its widths; the most
    valuable victim comes first. Without its least width it stops as a whole.

    Args:
        victims: Jobs that free what is lacking between them, the cheapest to stop first.
        short: Instances that are lacking.
    """
    elastic = [victim for victim in victims if victim.widths is not None]
    if not elastic:
        return {}
    spare = minus(total(victim.vector for victim in victims), short)
    kept: dict[str, Vector] = {}
    for widest in (False, True):
        for victim in reversed(elastic):
            before = kept.get(victim.name, {})
            room = _kept(victim, total((spare, before)), widest=widest)
            if room is not None and (before or not widest):
                kept[victim.name] = room
                take(spare, minus(room, before))
    return kept


def first_borrowed(
    victims: Iterable[RunningJob], short: Vector, covered: Mapping[str, int]
) -> tuple[RunningJob, ...]:
    """Return the first victims that are enough though their teams' quotas keep what they cover; or none.

    Args:
        victims: Jobs that may be stopped, in their order.
        short: Instances that are lacking.
        covered: Widths of elastic jobs that their teams' quotas cover; what is beyond is borrowed.
    """
    parts: dict[str, Vector] = {}
    chosen: list[RunningJob] = []
    missing = dict(short)
    for victim in victims:
        parts[victim.name] = minus(victim.vector, dict.fromkeys(victim.vector, covered.get(victim.name, 0)))
        if missing.keys().isdisjoint(victim.vector):
            continue
        chosen.append(victim)
        missing = lacking(missing, parts[victim.name])
        if not missing:
            break
    for victim in reversed(chosen):
        others = [other for other in chosen if other is not victim]
        if not lacking(short, total(parts[other.name] for other in others)):
            chosen = others
    return () if missing else tuple(chosen)


def takes_covered(victims: Iterable[RunningJob], short: Vector, covered: Mapping[str, int]) -> bool:
    """Tell whether a job keeps less of its width than its team's quota covers."""
    chosen = tuple(victims)
    kept = kept_of(chosen, short)
    return any(sum(kept.get(victim.name, {}).values()) < covered.get(victim.name, 0) for victim in chosen)


def is_enough(job: RunningJob, short: Vector) -> bool:
    """Tell whether a job can free all that is lacking and come back narrower."""
    return job.widths is not None and _kept(job, minus(job.vector, short)) is not None


def _kept(job: RunningJob, spare: Mapping[Capacity, int], *, widest: bool = True) -> Vector | None:
    """Return the most, or the least, that the job can keep of what is spare; None if it can keep no width."""
    assert job.widths is not None, job
    ((capacity, held),) = job.vector.items()
    most = min(spare.get(capacity, 0), held - 1)
    widths = [count for count in job.widths.counts if count <= most]
    return {capacity: widths[-1 if widest else 0]} if widths else None
