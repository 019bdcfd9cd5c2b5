"""Cost of a stop, and of the wait for the next instance, in weighted instance-hours.

An hour of a job weighs twice as much as one of a job of ``double_every`` points of priority less. Each victim
costs, for each of its instances, what it has not saved, as ``lost_work`` hours of waiting an hour, and its
restart; and for each instance that is taken from it the wait for the next one. What a preemption spares is
``preemption_worth``'s.

Unsaved work counts for less the more it is: it is divided by one more for each ``unsaved`` of it. So a job
that saves nothing can be reached, each price has a bound, and each preemption is worth it in time.
A job that loses no more than ``small_loss`` is stopped whatever it costs.
The price may keep a job waiting, but one of the highest priority in the pool not beyond ``longest_wait``.
A stop before an attempt has trained for ``SETTLED`` loses more than work: its start-up was in vain, and a
Create and a Stop, of which an account has about one a second. So its start-up counts, also as a part of a
small loss, and ``IN_VAIN`` on top. Its loss is a small one only as long as no job of the pool runs that was
stopped within the last day: so the first such stop asks for no price, and where jobs are stopped all day each
does. A job that was stopped within the last day is protected for longer, twice as long after each further
stop: meanwhile its loss is never small, what its last stop lost counts once more, and ``AGAIN`` on top.
Where starts of a type ended for want of capacity of late (``start_records``), the stopped job may not get its
place back: each such end that is to be expected counts ``PLACE_LOST``, also as a part of a small loss.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from trainmaster.core.planning.expected_ends import ExpectedEnds
from trainmaster.core.planning.preemption import Chosen, work_lost
from trainmaster.core.planning.snapshot import Held, RunningJob, WaitingJob
from trainmaster.core.planning.start_records import StartRecords
from trainmaster.core.policy import PreemptionCost

GRACE = timedelta(minutes=2)
"""Time that a stopping job's instances do nothing useful.

Source: SageMaker API reference, StopTrainingJob: 120 seconds to save."""
SETTLED = timedelta(minutes=5)
"""Time that an attempt must train until its start was worth something."""
IN_VAIN = timedelta(minutes=40)
"""Time that each instance of a start counts as which came to nothing."""
AGAIN = timedelta(hours=8)
"""Time that each instance of a job counts as which is stopped again while it is protected."""
PLACE_LOST = timedelta(minutes=30)
"""Time that each instance counts as of a start that ends for want of capacity, with the back-off after it."""
_HOUR = timedelta(hours=1)
_HOUR_S = _HOUR.total_seconds()
_GRACE_S = GRACE.total_seconds()
_NO_TIME = timedelta()


@dataclass(frozen=True, kw_only=True)
class PreemptionPrices:
    """Cost of stopping each job of a pool at one instant, and the preemptors that gain more than that."""

    rules: PreemptionCost
    ends: ExpectedEnds
    now: datetime
    highest: int | None = None
    """Highest priority of all jobs of the pool; None: no wait has a bound."""
    start_records: StartRecords = field(default_factory=StartRecords)
    has_recent_stops: bool = False
    """Whether a job of the pool runs that was stopped within the last day."""
    _costs: dict[str, float] = field(init=False, default_factory=dict)
    _weights: dict[int, float] = field(init=False, default_factory=dict)
    _places_lost_by_held: dict[Held, timedelta] = field(init=False, default_factory=dict)

    def of_stop(self, job: RunningJob) -> float:
        """Return the cost of a stop at once in weighted instance-hours, without the wait that follows."""
        # A plan asks for each victim's cost when it sorts, compares, takes and spares it.
        cost = self._costs.get(job.name)
        if cost is None:
            cost = self._costs[job.name] = self._of_later_stop(job, later=_NO_TIME)
        return cost

    def _of_later_stop(self, job: RunningJob, *, later: timedelta) -> float:
        """Return the cost of a stop ``later``, if the job trains on until then and saves nothing."""
        trained = self._trained(job, later=later)
        lost, restart = self._lost(job, trained, later=later).total_seconds(), 0.0
        if job.training_since is not None:
            restart = (job.training_since - job.claimed_at).total_seconds()
        elif job.preemptions:
            restart = (self.now - job.claimed_at).total_seconds()
        # Lost work counts for less the more it is, up to a bound: see the module's second paragraph.
        counted = self.rules.lost_work * lost / (1 + lost / self.rules.unsaved.total_seconds())
        restart = max(self.rules.restart.total_seconds(), restart) + _GRACE_S
        if job.stops is not None or trained < SETTLED:  # hardly ever
            restart += self._of_thrash(job, trained, later=later).total_seconds()
        if self.start_records.by_capacity:  # hardly ever
            restart += self._places_lost(job).total_seconds()
        return self.weight(job.priority) * _instances(job) * (counted + restart) / _HOUR_S

    def _of_thrash(self, job: RunningJob, trained: timedelta, *, later: timedelta) -> timedelta:
        """Return the time that a start or a stop counts as which comes to nothing by this stop."""
        wasted = self._start_in_vain(job, trained)
        if trained < SETTLED:
            wasted += IN_VAIN
        if job.stops is not None and trained < self._protection(job, later=later):
            wasted += job.stops.lost + AGAIN
        return wasted

    def _start_in_vain(self, job: RunningJob, trained: timedelta) -> timedelta:
        """Return the start-up of an attempt that has hardly trained; nothing of one that has."""
        if trained >= SETTLED:
            return _NO_TIME
        return (job.training_since or self.now) - job.claimed_at

    def _places_lost(self, job: RunningJob) -> timedelta:
        """Return the time that its next starts are expected to lose for want of capacity until one trains."""
        if not self.start_records.by_capacity:
            return _NO_TIME
        lost = self._places_lost_by_held.get(job.held)
        if lost is None:
            chance = self.start_records.chance_of(job.vector, now=self.now)
            # Failed starts before one that trains, where each fails with this chance.
            lost = self._places_lost_by_held[job.held] = chance / (1 - chance) * PLACE_LOST
        return lost

    def has_just_begun(self, job: RunningJob) -> bool:
        """Tell whether a stop now would waste its start."""
        return self._trained(job, later=_NO_TIME) < SETTLED

    def is_protected(self, job: RunningJob) -> bool:
        """Tell whether earlier stops raise the price of one now."""
        return self._trained(job, later=_NO_TIME) < self._protection(job, later=_NO_TIME)

    def _protection(self, job: RunningJob, *, later: timedelta) -> timedelta:
        """Return how long the job trains before it is stopped as readily as others."""
        return _NO_TIME if job.stops is None else job.stops.protects_for(now=self.now + later)

    def _lost(self, job: RunningJob, trained: timedelta, *, later: timedelta) -> timedelta:
        """Return the work that a stop will lose if nothing is saved until then."""
        if job.training_since is None:
            return trained
        return work_lost(job, now=self.now) + later

    def _trained(self, job: RunningJob, *, later: timedelta) -> timedelta:
        """Return how long its attempt will have trained; one that is starting trains after ``restart``."""
        if job.training_since is not None:
            return self.now + later - job.training_since
        return max(self.now + later - max(self.now, job.claimed_at + self.rules.restart), _NO_TIME)

    def of_wait(self, priority: int, wait: timedelta) -> float:
        """Return the cost of taking one instance from a job that then waits this long for another."""
        return self.weight(priority) * (wait / _HOUR)

    def of_all(self, chosen: Chosen, *, wait: timedelta, later: timedelta = _NO_TIME) -> float:
        """Return the cost of stopping all ``later``, if each waits ``wait`` but for those that keep room."""
        waits = sum(
            self.of_wait(victim.priority, wait)
            * sum(min(victim.vector.get(c, 0), n) for c, n in chosen.short.items())
            for victim in chosen.victims
            if victim.name not in chosen.kept
        )
        if not later:
            return waits + sum(map(self.of_stop, chosen.victims))
        return waits + sum(self._of_later_stop(victim, later=later) for victim in chosen.victims)

    def is_small(self, chosen: Chosen, *, later: timedelta = _NO_TIME) -> bool:
        """Tell whether each victim would lose so little work that the cost is not considered."""
        return all(self._loses_little(victim, later=later) for victim in chosen.victims)

    def _loses_little(self, job: RunningJob, *, later: timedelta) -> bool:
        trained = self._trained(job, later=later)
        settled = SETTLED if self.has_recent_stops else _NO_TIME
        if trained < max(settled, self._protection(job, later=later)):
            return False
        lost = self._lost(job, trained, later=later) + self._start_in_vain(job, trained)
        return lost + self._places_lost(job) <= self.rules.small_loss

    def no_price_from(self, job: WaitingJob) -> datetime | None:
        """Return when no price is asked any more for what the job needs; None: one always is."""
        longest = self.rules.longest_wait
        if longest is None or self.highest is None or job.priority < self.highest:
            return None
        return self.now - self.waited(job) + longest

    def asks_no_price(self, job: WaitingJob) -> bool:
        """Tell whether the job has waited so long that others are stopped for it whatever it costs."""
        since = self.no_price_from(job)
        return since is not None and since <= self.now

    def waited(self, job: WaitingJob) -> timedelta:
        """Return its wait so far, without the time that it has trained."""
        return max(self.now - job.submitted_at - (job.trained or _NO_TIME), _NO_TIME)

    def weight(self, priority: int) -> float:
        """Return how much an hour of a job of this priority counts."""
        weight = self._weights.get(priority)
        if weight is None:
            weight = self._weights[priority] = 2.0 ** (priority / self.rules.double_every)
        return weight


def _instances(job: RunningJob) -> int:
    return sum(job.vector.values())
