"""Growths at the end of a plan: elastic jobs take room that no waiting job can use, where it pays.

At most one in each plan, the first in order for which it is worth it. A growth gives all instances of the job
back to AWS for minutes, so what it saves has to be ``elastic.min_gain`` beyond its own price, and a job that
changed its width within ``elastic.snooze`` is left alone. The chance that AWS does not give them again is in
the price, and nothing grows on a type for a day after a start ended for want of capacity. Instances of
training plans are not AWS's to give to others: there is no such risk.
"""

from collections.abc import Iterator
from datetime import timedelta
from operator import attrgetter

from trainmaster.core.jobs.instances import Capacity
from trainmaster.core.jobs.run_time import END_SLACK
from trainmaster.core.planning.actions import Grow
from trainmaster.core.planning.growth_limits import Walked, bar, keeps_promises
from trainmaster.core.planning.preemption_cost import PLACE_LOST
from trainmaster.core.planning.snapshot import RunningJob
from trainmaster.core.planning.width_worth import NO_RISK, StartRisk, WidthWorth, width_worth
from trainmaster.core.policy.kinds import duration_text


def growths(walk: Walked) -> tuple[list[Grow], dict[str, str]]:
    """Return the growth that the plan makes, if any, and by job in words what a growth would need."""
    elastic = sorted((job for job in walk.snapshot.running if job.widths is not None), key=attrgetter("rank"))
    grown: list[Grow] = []
    words: dict[str, str] = {}
    for job in elastic:
        best = None if grown or bar(job, walk) else _best(job, walk)
        if best is not None and best.saved >= walk.pool.elastic.min_gain:
            walk.capacity.keep(job, dict.fromkeys(job.vector, best.to))
            used = {capacity: walk.capacity.used.get(capacity, 0) for capacity in job.vector}
            grown.append(Grow(job=job, width=best.to, used=used, why=best.text))
            words[job.name] = f"{best.text}: it is asked to stop for that"
        else:
            words[job.name] = _words(job, walk)
    return grown, words


def _words(job: RunningJob, walk: Walked) -> str:
    """Say how wide a job is, what its next width would save, and what is in the way of that."""
    assert job.widths is not None, job
    ((capacity, width),) = job.vector.items()
    wider = [count for count in job.widths.counts if count > width]
    if not wider:
        return f"{width} of {job.widths.largest} instances"
    best = _best(job, walk)
    worth = best or width_worth(job, wider[0], now=walk.now, risk=_risk(capacity, walk))
    barred = bar(job, walk)
    if barred is None and best is None:
        barred = f"needs {wider[0] - width} more {capacity} that are free and stay so"
    if barred is None and worth.saved < walk.pool.elastic.min_gain:
        barred = f"that has to be {duration_text(walk.pool.elastic.min_gain)} at least"
    return f"{worth.text}: {barred or 'after the growth of another job'}"


def _best(job: RunningJob, walk: Walked) -> WidthWorth | None:
    return max(_worths(job, walk), key=attrgetter("saved"), default=None)


def _risk(capacity: Capacity, walk: Walked) -> StartRisk:
    """Return the risk of a restart: its failed starts until one trains take ``PLACE_LOST`` each."""
    chance = walk.snapshot.start_records.no_capacity_chance(capacity, now=walk.now)
    if capacity.is_plan or not chance:
        return NO_RISK
    return StartRisk(chance=chance, wait=PLACE_LOST / (1 - chance))


def _worths(job: RunningJob, walk: Walked) -> Iterator[WidthWorth]:
    """Yield what each wider width is worth that there is room for until the job would end."""
    assert job.widths is not None, job
    ((capacity, width),) = job.vector.items()
    room, risk = _room(job, capacity, walk), _risk(capacity, walk)
    for count in job.widths.counts:
        if width < count <= width + room:
            worth = width_worth(job, count, now=walk.now, risk=risk)
            in_use = {capacity: walk.capacity.used.get(capacity, 0) + count - width}
            until = walk.now + max(worth.ends_in, timedelta()) + END_SLACK
            if walk.ahead.takes_back(job.team, in_use, until=until) or not keeps_promises(job, count, walk):
                continue
            yield worth


def _room(job: RunningJob, capacity: Capacity, walk: Walked) -> int:
    """Return how many more instances the job may have, by what is free and by the limits on its team."""
    free = walk.capacity.free.of(job.team).get(capacity, 0)
    granted = free if job.account_width is None else job.account_width - job.vector[capacity]
    room = min(free, granted, walk.capacity.allowed.get(capacity, free))
    return min(room, walk.quotas.room(job, capacity, most=room))
