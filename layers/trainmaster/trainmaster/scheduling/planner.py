"""One look at a pool: what to do now, and why every other job waits. The only place that decides."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from trainmaster.jobs import Capacity, JobState, Reason, Vector, fits, vector_text
from trainmaster.policy import PoolPolicy
from trainmaster.scheduling.actions import Action, DropHold, LimitHold, Plan, Preempt, Start, Stop, Unpark
from trainmaster.scheduling.capacity import kept_from, minus, on_its_way, pool_vector
from trainmaster.scheduling.preemption import victims_for
from trainmaster.scheduling.snapshot import Hold, RunningJob, Snapshot, WaitingJob, known_as, total

HOLD_LIFE = timedelta(minutes=15)
"""A preemptor that has not started this long after its last victim ended loses its room."""


def plan(snapshot: Snapshot, pool: PoolPolicy, *, now: datetime) -> Plan:
    """Decide about every candidate exactly once.

    Strictly in turn by ``(score, name)``: what does not fit keeps its instance types from those
    behind it, so nobody is overtaken on the capacity it waits for. A job that would not fit into an
    empty pool (capacity was lowered) waits without standing in anybody's way.

    Args:
        snapshot: The pool as read at the start of the pass.
        pool: Its section of the policy.
        now: The instant of the pass, UTC; the planner never looks at a clock.

    Returns:
        Actions in the order they must be carried out, and a reason for each candidate that does not
        start.
    """
    stops = [Stop(job=job) for job in snapshot.running if _must_be_told(job)]
    unparks = [Unpark(job=job) for job in snapshot.due]
    holds, upkeep = _upkeep(snapshot, now=now)
    if snapshot.paused:
        reasons = {job.name: _PAUSED for job in snapshot.waiting}
        return Plan(actions=(*stops, *unparks, *upkeep), reasons=reasons)
    turn = _Turn(snapshot=snapshot, pool=pool, now=now, holds=holds, used=dict(snapshot.used))
    for job in sorted(snapshot.waiting, key=lambda one: one.rank):
        turn.consider(job)
    return Plan(actions=(*stops, *unparks, *upkeep, *turn.actions), reasons=turn.reasons)


def _must_be_told(job: RunningJob) -> bool:
    asked = job.state in (JobState.PREEMPTING, JobState.STOPPING)
    return asked and job.known_to_sagemaker and not job.stop_sent


def _upkeep(snapshot: Snapshot, *, now: datetime) -> tuple[tuple[Hold, ...], list[Action]]:
    """Holds that live on, and what is to be done about the others."""
    live: list[Hold] = []
    actions: list[Action] = []
    stopping = {job.name for job in snapshot.running if job.state in (JobState.PREEMPTING, JobState.STOPPING)}
    for hold in snapshot.holds:
        if hold.preemptor in snapshot.gone_preemptors or (hold.until is not None and hold.until <= now):
            actions.append(DropHold(hold=hold))
            continue
        if hold.until is None and not stopping & set(hold.victims):
            actions.append(LimitHold(hold=hold, until=now + HOLD_LIFE))
        live.append(hold)
    return tuple(live), actions


@dataclass(slots=True, kw_only=True)
class _Turn:
    """The queue walked once, in order; counts what the walk has given away so far."""

    snapshot: Snapshot
    pool: PoolPolicy
    now: datetime
    holds: tuple[Hold, ...]
    used: dict[Capacity, int]
    preempting: set[str] = field(default_factory=set)
    waits_for: dict[Capacity, WaitingJob] = field(default_factory=dict)
    """Capacity that a job ahead waits for, and the first such job."""
    actions: list[Action] = field(default_factory=list)
    reasons: dict[str, Reason] = field(default_factory=dict)

    def consider(self, job: WaitingJob) -> None:
        capacity = pool_vector(self.pool)
        held = next((hold for hold in self.holds if hold.preemptor == job.name), None)
        ceiling = minus(capacity, kept_from(job.name, self.holds))
        free = minus(ceiling, self.used)
        ahead = next((self.waits_for[one] for one in sorted(job.vector) if one in self.waits_for), None)
        if not fits(job.vector, capacity):
            self.reasons[job.name] = _too_big(job, capacity)
        elif ahead is not None and held is None:
            self.reasons[job.name] = Reason(
                code="ahead",
                message=f"{known_as(ahead, to=job.team)} is ahead and waits for the same instances",
            )
        elif fits(job.vector, free):
            self._start(job, room=minus(ceiling, job.vector), ends_hold=held is not None)
        elif held is not None:
            victims = tuple(one for one in self.snapshot.running if one.name in held.victims)
            self._wait(job, _making_room(victims, to=job.team) if victims else _short(job, free))
        else:
            self._preempt_or_wait(job, free)

    def _start(self, job: WaitingJob, *, room: Vector, ends_hold: bool) -> None:
        own = {capacity: room.get(capacity, 0) for capacity in job.vector}
        self.actions.append(Start(job=job, room=own, ends_hold=ends_hold))
        self.used = total((self.used, job.vector))
        if ends_hold:
            self.holds = tuple(hold for hold in self.holds if hold.preemptor != job.name)

    def _preempt_or_wait(self, job: WaitingJob, free: Vector) -> None:
        victims_so_far = [one.vector for one in self.snapshot.running if one.name in self.preempting]
        running = tuple(one for one in self.snapshot.running if one.name not in self.preempting)
        soon = total((free, on_its_way(running), *victims_so_far))
        if fits(job.vector, soon):
            self._wait(job, _short(job, free, note="; jobs that make room are stopping"))
            return
        victims = victims_for(job, free=soon, running=running, rules=self.pool.preemption, now=self.now)
        if not victims:
            self._wait(job, _short(job, free))
            return
        self.actions.append(Preempt(job=job, victims=victims, used=_of(job.vector, self.snapshot.used)))
        self.preempting |= {one.name for one in victims}
        self.holds = (
            *self.holds,
            Hold(preemptor=job.name, vector=job.vector, victims=tuple(v.name for v in victims)),
        )
        self._wait(job, _making_room(victims, to=job.team))

    def _wait(self, job: WaitingJob, reason: Reason) -> None:
        self.reasons[job.name] = reason
        for capacity in job.vector:
            self.waits_for.setdefault(capacity, job)


_PAUSED = Reason(code="paused", message="an admin paused starts and preemptions")


def _of(asked: Iterable[Capacity], vector: Vector) -> dict[Capacity, int]:
    return {capacity: vector.get(capacity, 0) for capacity in asked}


def _short(job: WaitingJob, free: Vector, *, note: str = "") -> Reason:
    have = {capacity: max(free.get(capacity, 0), 0) for capacity in job.vector}
    message = f"needs {vector_text(job.vector)}, free {vector_text(have)}{note}"
    return Reason(code="capacity", message=message)


def _too_big(job: WaitingJob, capacity: Vector) -> Reason:
    have = vector_text(_of(job.vector, capacity))
    return Reason(code="capacity", message=f"needs {vector_text(job.vector)}, the pool has {have} in all")


def _making_room(victims: tuple[RunningJob, ...], *, to: str) -> Reason:
    names = ", ".join(known_as(victim, to=to) for victim in victims)
    verb = "are" if len(victims) > 1 else "is"
    return Reason(code="capacity", message=f"{names} {verb} stopping to make room")
