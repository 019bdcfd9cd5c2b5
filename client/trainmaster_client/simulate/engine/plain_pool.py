"""The plain priority queue to compare with: strict head of the queue, the lowest priority stopped first.

It is the algorithm that the idea of a priority scheduler for training jobs starts from, made race-free: it
counts what is already stopping, and several instances of one job start together or not at all. It has no
backfill, quotas, budgets, reservations or warm pools, it does not ask what a stop would cost, and it stops
one job at a time. What fails and was tried again is in the queue again at once. It follows a calendar without
looking ahead: what is above a lowered capacity is stopped then.
"""

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from trainmaster.core.jobs.end_conditions import ParentEnd
from trainmaster.core.jobs.instances import Capacity, fits
from trainmaster.core.planning.capacity import minus, pool_vector, take
from trainmaster.core.policy import PoolPolicy

from trainmaster_client.simulate.engine.admitted_jobs import Admitted
from trainmaster_client.simulate.engine.capacity_over_time import CapacityOverTime
from trainmaster_client.simulate.engine.event_queue import LONGEST_WAIT_S, MINUTE_S, What
from trainmaster_client.simulate.engine.past_jobs import INTERRUPTED, PastJob
from trainmaster_client.simulate.engine.replay_setting import Setting
from trainmaster_client.simulate.engine.runs import Finish, Run
from trainmaster_client.simulate.engine.simulated_sagemaker import Asked, SimulatedSageMaker
from trainmaster_client.simulate.engine.tally import Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A job that waits or runs."""

    past: PastJob
    found: Admitted
    attempts: int = 0
    stopped_for: str | None = None
    """Job that it was asked to stop for; empty if for the calendar, None while it was not asked."""


@dataclass(slots=True, kw_only=True)
class PlainPool:
    """Decides for one pool. A queue that differs in its order or its victims overrides these two."""

    sagemaker: SimulatedSageMaker
    free: dict[Capacity, int]
    coming: dict[Capacity, int] = field(default_factory=dict)
    """Instances of attempts that are stopping."""
    waiting: list[Entry] = field(default_factory=list)
    running: dict[str, Entry] = field(default_factory=dict)
    tally: Tally = field(default_factory=Tally)
    rules: PoolPolicy | None = None
    """The pool as it was last seen; None: it has no calendar."""
    over_time: CapacityOverTime | None = None
    change_put: datetime | None = None
    """Change of the calendar for which a look is on the event queue."""

    @classmethod
    def of(cls, rules: PoolPolicy, setting: Setting) -> "PlainPool":
        """Make an empty pool."""
        sagemaker = setting.sagemaker_of(rules.name)
        over_time = CapacityOverTime.of(rules, begins=setting.begins)
        if over_time is not None:
            rules = over_time.at(setting.begins)
        return cls(sagemaker=sagemaker, free=pool_vector(rules), rules=rules, over_time=over_time)

    # ---- what happens

    def submitted(self, past: PastJob, admitted: Admitted) -> None:
        self.sagemaker.expects(past)
        insort(self.waiting, Entry(past=past, found=admitted), key=self.turn)

    def hears(self, what: What, name: str, serial: int) -> bool:
        """Handle an event of a job; return False if it came too late."""
        if what is What.MINUTE:
            return True
        if what is What.WITHDRAWN:
            return self._withdrawn(name)
        run = self.sagemaker.news_of(name, serial, what)
        if run is None:
            return False
        if what is What.OVER:
            self._over(name, run)
        elif what is What.STOPPED:
            self._ends(name, "preempted")
        elif what is What.WAITED_TOO_LONG:
            self._ends(name, "stopped")
        return True

    def _over(self, name: str, run: Run) -> None:
        course = self.sagemaker.courses[name]
        if run.finish is Finish.MAX_RUNTIME:
            self._ends(name, "stopped")
        elif run.finish is Finish.DONE:
            self._ends(name, course.past.end)
        elif course.breaks[0].code == INTERRUPTED:
            self.sagemaker.interrupt(name)
        else:
            self._ends(name, "failed", broke=True)

    def _withdrawn(self, name: str) -> bool:
        """Withdraw a job: it waits no more, or is stopped at once."""
        if not self.sagemaker.may_withdraw(name):
            return False
        if name in self.running:
            self._ends(name, "stopped")
        else:
            self.waiting = [entry for entry in self.waiting if entry.past.name != name]
            del self.sagemaker.courses[name]
            self.tally.ended.append((name, ParentEnd.STOPPED))
        return True

    def _ends(self, name: str, end: str, *, broke: bool = False) -> None:
        entry = self.running.pop(name)
        ended = self.sagemaker.end(name, broke=broke)
        vector = entry.found.shape.vector
        take(self.free, vector, times=-1)
        if entry.stopped_for is not None:
            take(self.coming, vector)
        self.tally.attempts.append(self.sagemaker.row(name, ended, end=end, by=entry.stopped_for or None))
        if broke or end == "preempted":
            insort(self.waiting, replace(entry, stopped_for=None), key=self.turn)
        else:
            del self.sagemaker.courses[name]
            self.tally.ended.append((name, ParentEnd(end)))

    # ---- what is done

    def decide(self) -> None:
        """Start from the head while the head fits; then stop one job for it, if that is not under way."""
        if self.over_time is not None:
            self._follow(self.over_time)
        while self.waiting and self.may_start(self.waiting[0]):
            self._start(self.waiting.pop(0))
        if not self.waiting:
            return
        head = self.waiting[0]
        both = dict(self.free)
        take(both, self.coming, times=-1)
        if not fits(head.found.shape.vector, both):
            self._stop_one_for(head, both)

    def _follow(self, over_time: CapacityOverTime) -> None:
        """Take over what the calendar has changed, and look again at its next change."""
        before, now = self.rules, self.sagemaker.now
        if before is not None and not over_time.is_as_asked(now):
            self.rules = over_time.at(now)
            take(self.free, minus(pool_vector(before), pool_vector(self.rules)))
            self._stop_what_is_above(self.rules)
        change = self.rules.ahead[0].at if self.rules is not None and self.rules.ahead else None
        may_move = self.running or self.sagemaker.idle_s < LONGEST_WAIT_S
        if change is not None and change != self.change_put and may_move:
            self.change_put = change
            second = -(-self.sagemaker.second(change) // MINUTE_S) * MINUTE_S
            self.sagemaker.event_queue.put(second, What.MINUTE, self.sagemaker.pool)

    def _stop_what_is_above(self, rules: PoolPolicy) -> None:
        """Stop jobs, as for others, until no more is used than the calendar leaves."""
        runs = self.sagemaker.runs
        for capacity in map(Capacity, rules.stops):
            while self.free.get(capacity, 0) + self.coming.get(capacity, 0) < 0:
                holding = [
                    entry
                    for entry in self.running.values()
                    if capacity in entry.found.shape.vector and runs[entry.past.name].stopped_s is None
                ]
                victim = self.victim(holding)
                if victim is None:
                    break
                self._stop(victim, for_job="")

    def may_start(self, entry: Entry) -> bool:
        """Tell whether the job fits and the account allows it; else it is tried when something ends."""
        vector = entry.found.shape.vector
        return fits(vector, self.free) and not self.sagemaker.refuses(vector)

    def _start(self, entry: Entry) -> None:
        past, vector = entry.past, entry.found.shape.vector
        take(self.free, vector)
        request = Asked(number=entry.attempts, vector=vector, max_runtime=past.max_runtime, max_wait=None)
        self.running[past.name] = replace(entry, attempts=entry.attempts + 1)
        self.sagemaker.begin(past.name, request)

    def _stop_one_for(self, head: Entry, both: dict[Capacity, int]) -> None:
        """Stop the victim among the jobs below ``head`` that hold what it lacks."""
        wanted = {
            capacity for capacity, count in head.found.shape.vector.items() if both.get(capacity, 0) < count
        }
        runs = self.sagemaker.runs
        below = [
            entry
            for entry in self.running.values()
            if entry.found.priority < head.found.priority
            and runs[entry.past.name].stopped_s is None
            and not wanted.isdisjoint(entry.found.shape.vector)
        ]
        victim = self.victim(below)
        if victim is None:
            return
        self._stop(victim, for_job=head.past.name)

    def _stop(self, victim: Entry, *, for_job: str) -> None:
        name = victim.past.name
        self.running[name] = replace(victim, stopped_for=for_job)
        take(self.coming, victim.found.shape.vector, times=-1)
        self.sagemaker.stop(name)

    # ---- what makes it plain

    def turn(self, entry: Entry) -> tuple[Any, ...]:
        """Return the sort key of the queue: the highest priority first, then the earliest submission."""
        return (-entry.found.priority, entry.past.submitted_at, entry.past.name)

    def victim(self, below: Sequence[Entry]) -> Entry | None:
        """Return the lowest priority's earliest job; None stops no job."""
        runs = self.sagemaker.runs
        return min(
            below,
            key=lambda entry: (entry.found.priority, entry.past.submitted_at, runs[entry.past.name].start_s),
            default=None,
        )

    def close(self) -> None:
        """End the replay here."""
        self.tally.attempts += self.sagemaker.live_rows()
