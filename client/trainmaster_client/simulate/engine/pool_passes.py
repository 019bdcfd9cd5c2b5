"""Passes over one pool: the product's planner decides, and its plan is carried out as ``execute`` does."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import assert_never

from trainmaster.core.errors import LostRaceError
from trainmaster.core.jobs.instances import Capacity, Vector
from trainmaster.core.jobs.model import Job
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.lifecycle.claims import attempt_for
from trainmaster.core.lifecycle.unserved_attempts import after_hold_ran_out, after_put_off
from trainmaster.core.lifecycle.victim_stops import asked_to_stop
from trainmaster.core.lifecycle.width_changes import width_refused
from trainmaster.core.planning import planner
from trainmaster.core.planning.account_limits import RECENT_END, limit_after, refused_again
from trainmaster.core.planning.actions import Action, Plan, Preempt, Start
from trainmaster.core.planning.apply import applied
from trainmaster.core.planning.capacity import pool_vector
from trainmaster.core.planning.changes import (
    ArrayChange,
    ArrayEnded,
    ArrayHeld,
    ArrayTrimmed,
    BudgetWarned,
    GpusWatched,
    GrowthAsked,
    HoldEnded,
    HoldLimited,
    HoldPlaced,
    HoldUsed,
    JobDrained,
    JobRequeued,
    JobStarts,
    LimitForgotten,
    PoolChange,
    RoomKept,
    StopSent,
    TasksDropped,
    TasksExpanded,
    VictimAsked,
    WarmPoolChange,
    WarmPoolExtended,
    WarmPoolGivenUp,
    WarmPoolGone,
    WarmPoolReused,
)
from trainmaster.core.planning.snapshot import WarmPool
from trainmaster.core.policy import Policy

from trainmaster_client.simulate.engine.event_queue import What
from trainmaster_client.simulate.engine.idle_plans import may_act
from trainmaster_client.simulate.engine.idle_pool import IdlePool
from trainmaster_client.simulate.engine.pool_state import PoolState
from trainmaster_client.simulate.engine.replayed_arrays import release_second
from trainmaster_client.simulate.engine.replays import WarmInterval
from trainmaster_client.simulate.engine.simulated_sagemaker import Asked, SimulatedSageMaker
from trainmaster_client.simulate.engine.tally import Tally

MOST_LOOKS = 1000
"""Most looks at one instant; a planner that still finds something to do is in an endless loop."""


@dataclass(slots=True, kw_only=True)
class PoolPasses:
    state: PoolState
    sagemaker: SimulatedSageMaker
    policy: Policy
    cpu_clock: Callable[[], float]
    """Seconds, to measure the planner by; no decision reads it."""
    tally: Tally
    refused: set[Capacity] = field(default_factory=set)
    """Types of which the account has refused a start of this plan: it would refuse further ones."""
    idle: IdlePool | None = None
    """The snapshot of the last plan if that had nothing in it; None if it had."""

    def run(self) -> None:
        """Plan and carry out until a plan has nothing in it that can be done, as a pass of the product."""
        self.state.follow(self.sagemaker.now)
        if self.idle is not None and self.idle.goes_on(self.state, now=self.sagemaker.now):
            return
        looks = 0
        while (decided := self._plan()) is not None and self._carry_out(decided):
            looks += 1
            assert looks < MOST_LOOKS, f"the planner comes to no end at {self.sagemaker.now}"

    def _plan(self) -> Plan | None:
        """Make a plan; None if it would have nothing in it."""
        now, rules = self.sagemaker.now, self.state.rules
        if self.state.is_empty:
            return None
        snapshot = self.state.snapshot(now)
        self.idle = None
        if not may_act(snapshot, rules, now=now):
            self.idle = IdlePool(version=self.state.version, snapshot=snapshot, since=now)
            return None
        began = self.cpu_clock()
        decided = planner.plan(snapshot, rules, now=now)
        self.tally.cpu_s += self.cpu_clock() - began
        self.tally.passes += 1
        return decided

    def _carry_out(self, plan: Plan) -> bool:
        """Carry out the plan; return whether anything was done."""
        self.refused.clear()
        done = [self._do(action) for action in plan.actions]
        return any(done)

    def _do(self, action: Action) -> bool:
        """Make the changes of an action; SageMaker does its part at once. False: there was none to make."""
        if isinstance(action, Start | Preempt) and not self.refused.isdisjoint(action.shape.vector):
            return False
        try:
            changes = applied(action, self.state)
        except LostRaceError:
            self.tally.refused_claims += 1
            return False
        if all(self._make(change) for change in changes.written):
            done = [self._make(change) for change in changes.afterwards]
            return bool(changes.written) or any(done)
        return True

    def _make(self, change: PoolChange) -> bool:
        """Make one change of the plan; return False if SageMaker does not do it."""
        self.state.version += 1
        match change:
            case JobStarts(start=start):
                return self._start(start)
            case VictimAsked() | GrowthAsked():
                self._ask_to_stop(change)
            case StopSent() | JobDrained():
                self._stop_running(change)
            case JobRequeued(job=waiting):
                job = self.state.jobs[waiting.name]
                self._commit(job, steps.unparked(job))
            case HoldPlaced() | RoomKept() | HoldLimited() | HoldUsed() | HoldEnded():
                self._change_hold(change)
            case TasksExpanded() | TasksDropped() | ArrayHeld() | ArrayEnded() | ArrayTrimmed():
                self._change_array(change)
            case WarmPoolReused() | WarmPoolExtended() | WarmPoolGivenUp() | WarmPoolGone():
                return self._change_warm_pool(change)
            case _:
                self._note(change)
        return True

    def _note(self, change: LimitForgotten | BudgetWarned | GpusWatched) -> None:
        match change:
            case LimitForgotten(capacity=capacity):
                self.state.account_limits.pop(capacity, None)
            case BudgetWarned(team=team, month=month):
                self.state.budgets.warned(team, month)
            case GpusWatched():
                raise AssertionError(f"no GPUs are watched here: {change}")
            case _:
                assert_never(change)

    def _change_array(self, change: ArrayChange) -> None:
        """Change an array; a held one is released when the history has its next task start."""
        match change:
            case TasksExpanded():
                for job in self.state.arrays.expand(change):
                    self.state.enters(job)
            case ArrayHeld(array=array):
                held = self.state.unstarted_tasks(array.name)
                self.state.arrays.change(change)
                if (second := release_second(held, self.sagemaker)) is not None:
                    pool = self.state.rules.name
                    self.sagemaker.event_queue.put(second, What.RELEASED, pool, array.name)
            case ArrayEnded() | ArrayTrimmed():
                self.state.arrays.change(change)
            case TasksDropped():
                raise AssertionError(f"no replayed array waits index by index: {change}")
            case _:
                assert_never(change)

    def _change_hold(self, change: HoldPlaced | RoomKept | HoldLimited | HoldUsed | HoldEnded) -> None:
        holds = self.state.holds
        match change:
            case HoldPlaced(hold=hold) | RoomKept(hold=hold):
                holds[hold.preemptor] = hold
            case HoldLimited(hold=hold, until=until):
                holds[hold.preemptor] = replace(hold, until=until)
            case HoldUsed(preemptor=preemptor):
                del holds[preemptor]
            case HoldEnded():
                self._end_hold(change)
            case _:
                assert_never(change)

    def _end_hold(self, change: HoldEnded) -> None:
        """End a reservation; a preemptor that still waits did not start in time."""
        hold = change.hold
        del self.state.holds[hold.preemptor]
        job = self.state.jobs.get(hold.preemptor)
        if change.ran_out and job is not None and job.is_waiting and not job.changes_width:
            self._commit(job, after_hold_ran_out(job, hold.vector, now=self.sagemaker.now))

    def _commit(self, before: Job, after: Job) -> None:
        self.state.commit(Change(before=before, after=after), now=self.sagemaker.now)

    # ---- warm pools

    def _change_warm_pool(self, change: WarmPoolReused | WarmPoolChange) -> bool:
        """Change a warm pool: SageMaker obeys at once, and gives a warm pool up when its time is over."""
        pool = change.warm_pool
        match change:
            case WarmPoolExtended(until=until):
                self.state.extend_warm(pool, until=until)
            case WarmPoolGivenUp(because=because):
                self.state.give_up_warm(pool, because)
            case WarmPoolGone() if not pool.releasing and pool.expires_at > self.sagemaker.now:
                return False
            case WarmPoolReused() | WarmPoolGone():
                self.take_warm(pool)
            case _:
                assert_never(change)
        return True

    def take_warm(self, pool: WarmPool) -> None:
        """Take a warm pool away: it ends, or a start lands in it."""
        since = self.sagemaker.second(pool.since)
        until = max(since, self.sagemaker.second(min(self.sagemaker.now, pool.expires_at)))
        for capacity, count in pool.vector.items():
            interval = WarmInterval(self.state.rules.name, capacity.instance_type, count, since, until)
            self.tally.warm.append(interval)
        self.state.take_warm(pool, now=self.sagemaker.now)

    # ---- starts and preemptions

    def _start(self, action: Start) -> bool:
        """Start the job; False if the account refuses it: then the job backs off."""
        job = self.state.jobs[action.job.name]
        if action.reuses is None and self.sagemaker.refuses(action.shape.vector, self.state.warm):
            self._refused(job, action)
            return False
        started = self._claimed(job, action)
        self._commit(job, started)
        live = started.live_attempt
        self._note_most_held(job.name, live.vector)
        request = Asked(
            number=live.number, vector=live.vector, max_runtime=live.max_runtime, max_wait=live.max_wait
        )
        self.sagemaker.begin(job.name, request, warm=action.reuses is not None)
        return True

    def _refused(self, job: Job, action: Start) -> None:
        """Record the account's refusal: the job backs off, and the limit of its types is learned."""
        state, now = self.state, self.sagemaker.now
        self.refused |= action.shape.vector.keys()
        held = state.held()
        refusals = refused_again(
            job.starts.by_account,
            held={capacity: held.get(capacity, 0) for capacity in action.shape.vector},
            soon=any(now - end < RECENT_END for kind, end in state.last_end.items() if kind in job.vector),
            at=now,
            seed=job.spec.entry_id,
        )
        if action.job.refused is None:
            for capacity, count in action.shape.vector.items():
                known, refused_count = state.account_limits.get(capacity), held.get(capacity, 0) + count
                last = state.last_end.get(capacity)
                state.account_limits[capacity] = limit_after(
                    known, refused=refused_count, last_end=last, at=now, seed=job.name
                )
        attempt = attempt_for(job, action, pool=state.rules, policy=self.policy, at=now)
        claimed = steps.claim(job, attempt, after_stops=action.ends_hold)
        self._commit(job, claimed)
        released = steps.refused_by_account(claimed, refusals, "ResourceLimitExceeded")
        put_off = after_put_off(claimed, width_refused(claimed, released, left=None), now=now)
        state.commit(steps.claim_undone(claimed, put_off, None), now=now)

    def _claimed(self, job: Job, action: Start) -> Job:
        """Claim the attempt; SageMaker takes it at once. Its first news says that it has its warm pool."""
        now = self.sagemaker.now
        attempt = attempt_for(job, action, pool=self.state.rules, policy=self.policy, at=now)
        claimed = steps.claim(job, attempt, after_stops=action.ends_hold)
        return steps.recorded(claimed, training_job_arn=attempt.training_job_name, now=now)

    def _note_most_held(self, name: str, started: Vector) -> None:
        most, there = self.tally.most_held, pool_vector(self.state.rules)
        for capacity, count in self.state.held().items():
            most[capacity] = max(most.get(capacity, 0), count)
            if capacity in started:  # others may be above what the calendar has lowered
                assert count <= there.get(capacity, 0), f"{name} does not fit"

    def _ask_to_stop(self, change: VictimAsked | GrowthAsked) -> None:
        job = self.state.jobs[change.job.name]
        self._commit(job, asked_to_stop(job, change, now=self.sagemaker.now))

    def _stop_running(self, change: StopSent | JobDrained) -> None:
        name = change.job.name
        if isinstance(change, JobDrained):
            job = self.state.jobs[name]
            self._commit(job, steps.drained(job, change.why))
        self._stop(self.state.jobs[name])

    def _stop(self, job: Job) -> None:
        self.sagemaker.stop(job.name)
        self.state.changes_attempt(steps.stop_told(job))
