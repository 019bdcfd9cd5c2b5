"""One pool in simulated time: what happens to its jobs, and a pass after each event.

What becomes of a job is decided by the functions that decide it in the product.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Self

from trainmaster.core.forecast.run_times import start_of_month
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.end_conditions import ParentEnd
from trainmaster.core.jobs.failures import Diagnosis, FailureClass
from trainmaster.core.jobs.model import Job
from trainmaster.core.jobs.observations import Observation
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle import settlement, spot_fallback, steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.lifecycle.decision import EndFacts, Question, decide, questions
from trainmaster.core.monitoring.checkpoints import is_worth_a_look
from trainmaster.core.policy import Policy, PoolPolicy

from trainmaster_client.simulate.engine.admitted_jobs import Admitted, learned_in, submitted, traits_of
from trainmaster_client.simulate.engine.capacity_over_time import CapacityOverTime
from trainmaster_client.simulate.engine.checkpoint_turns import CheckpointTurns
from trainmaster_client.simulate.engine.event_queue import LONGEST_WAIT_S, MINUTE_S, What
from trainmaster_client.simulate.engine.past_jobs import INTERRUPTED, PastJob
from trainmaster_client.simulate.engine.pool_passes import PoolPasses
from trainmaster_client.simulate.engine.pool_state import PoolState
from trainmaster_client.simulate.engine.progress_looks import read_progress
from trainmaster_client.simulate.engine.replay_setting import Setting
from trainmaster_client.simulate.engine.replays import end_text
from trainmaster_client.simulate.engine.runs import Finish, Run
from trainmaster_client.simulate.engine.simulated_sagemaker import SimulatedSageMaker
from trainmaster_client.simulate.engine.tally import Tally

GIVE_UP_S = 3600
"""Seconds after which a queue that has not moved never will, with nothing live and nothing to come."""
LONGEST_MONTHS_S = 62 * 24 * 3600
"""Longest time, in seconds, that a job may wait for its team's next month."""
_BY_USER = Reason(code=ReasonCode.STOPPED_BY_USER, message="stopped on request")
_DOUBTED = frozenset({FailureClass.SERVICE, FailureClass.HARDWARE, FailureClass.CAPACITY})
"""Failures after which SageMaker keeps no warm pool: the hosts may be to blame."""


@dataclass(slots=True, kw_only=True)
class PoolReplay:
    setting: Setting
    state: PoolState
    sagemaker: SimulatedSageMaker
    passes: PoolPasses
    tally: Tally
    turns: CheckpointTurns = field(default_factory=CheckpointTurns)
    minute_put: bool = False
    """The next run of ``reconcile`` is on the event_queue."""

    @classmethod
    def of(cls, rules: PoolPolicy, setting: Setting) -> "PoolReplay":
        """Make an empty pool."""
        tally, state = Tally(), PoolState.of(rules, setting.policy, setting.budgets)
        state.over_time = CapacityOverTime.of(rules, begins=setting.begins)
        sagemaker = setting.sagemaker_of(rules.name)
        return cls(
            setting=setting,
            state=state,
            sagemaker=sagemaker,
            tally=tally,
            passes=_passes(setting, state, sagemaker, tally),
        )

    def submitted(self, past: PastJob, admitted: Admitted) -> None:
        self.sagemaker.expects(past)
        keys = learned_in(past, admitted)
        known = self.state.lessons.known(traits_of(past, admitted), keys, now=past.submitted_at)
        self.state.enters(submitted(past, admitted, known), past.array)

    def hears(self, what: What, name: str, serial: int) -> bool:
        """Handle an event of a job, or of the next minute; return False if it came too late."""
        if what is What.MINUTE:
            self._reconcile()
            return True
        if what is What.WITHDRAWN:
            return self._withdrawn(name)
        if what is What.RELEASED:
            self.state.version += 1
            return self.state.arrays.release(name)
        run = self.sagemaker.news_of(name, serial, what)
        if run is not None:
            self._news(what, self.state.reuse_settled(name), run)
        return run is not None

    def _news(self, what: What, job: Job, run: Run) -> None:
        match what:
            case What.TRAINS:
                self._trains(job)
            case What.SECONDARY | What.STOPPING:
                pass
            case What.OVER:
                self._over(job, run)
            case What.STOPPED:
                self._ends(job, "Stopped", "Stopped")
            case What.WAITED_TOO_LONG:
                self._ends(job, "Stopped", "MaxWaitTimeExceeded")
            case _:
                raise AssertionError(f"{job.name}: {what} is no news of an attempt")

    def decide(self) -> None:
        """Make a pass, and put down the next minute if something may come of it."""
        self.passes.run()
        if self.minute_put or (self.state.is_quiet and not self.sagemaker.runs):
            return
        second = self._next_minute()
        if second is not None:
            self.minute_put = True
            self.setting.event_queue.put(second, What.MINUTE, self.state.rules.name)

    def _next_minute(self) -> float | None:
        now = self.setting.event_queue.now
        idle_s = self.sagemaker.idle_s
        if (
            self.sagemaker.runs
            or self.setting.event_queue.has_news
            or self.state.parked
            or idle_s < GIVE_UP_S
        ):
            return int(now // MINUTE_S + 1) * MINUTE_S
        ahead = [change[0].at for change in (self.state.rules.ahead, self.state.rules.plans_ahead) if change]
        if self.state.lanes and ahead and idle_s < LONGEST_WAIT_S:
            return -(-self.sagemaker.second(min(ahead)) // MINUTE_S) * MINUTE_S
        if self.state.budgets.limits and idle_s < LONGEST_MONTHS_S:
            month = start_of_month(self.sagemaker.now)
            next_month = month.replace(year=month.year + month.month // 12, month=month.month % 12 + 1)
            return self.sagemaker.second(next_month) + MINUTE_S
        return None

    def _trains(self, job: Job) -> None:
        self._progressed(job)
        if job.spec.has_checkpoint:
            self.turns.add(job.name)

    def _over(self, job: Job, run: Run) -> None:
        """End or interrupt a job whose training has stopped by itself."""
        past, breaks = self.sagemaker.courses[job.name].past, self.sagemaker.courses[job.name].breaks
        if run.finish is Finish.MAX_RUNTIME:
            self._ends(job, "Stopped", "MaxRuntimeExceeded")
        elif run.finish is Finish.BREAK and breaks[0].code == INTERRUPTED:
            self.sagemaker.interrupt(job.name)
            self._progressed(job)
        elif run.finish is Finish.BREAK:
            self._fails(job, _class_of(breaks[0].code), self.setting.policy)
        elif past.end == "completed":
            self._ends(job, "Completed", "Completed")
        elif past.end == "failed":
            self._fails(job, FailureClass.UNKNOWN, self.setting.never_retries)
        else:
            self._stopped_by_user(job)

    def _stopped_by_user(self, job: Job) -> None:
        """Stop the job; if its stop is not known, the time it took is part of how long it trained."""
        stopping = steps.cancelled(job, reason=_BY_USER, now=self.sagemaker.now)
        if self.sagemaker.stop_is_known(job.name):
            self.state.commit(Change(before=job, after=stopping), now=self.sagemaker.now)
        else:
            self.state.changes_attempt(stopping)
            self._ends(stopping, "Stopped", "Stopped")

    def _progressed(self, job: Job) -> None:
        seen = self.sagemaker.progress(job)
        after = steps.progressed(job, seen, now=self.sagemaker.now)
        self.state.changes_attempt(after)
        self._judge_spot(after, seen)

    def _judge_spot(self, job: Job, seen: Observation) -> None:
        """Apply the spot rules: they may end its attempt, and the next plan sends the stop."""
        if not spot_fallback.concern(job):
            return
        verdict = spot_fallback.verdict(job, seen, self.setting.policy, now=self.sagemaker.now)
        if verdict is not None and verdict.stays is None:
            self.state.changes_attempt(spot_fallback.leaves_spot(job, verdict.why))

    def _withdrawn(self, name: str) -> bool:
        """Withdraw a job: one that waits is over, one that is live is stopped."""
        if not self.sagemaker.may_withdraw(name):
            return False
        job, now = self.state.jobs.get(name), self.sagemaker.now
        if job is None:
            self.state.withdraws_task(name)
        else:
            stopped = steps.cancelled(job, reason=_BY_USER, now=now)
            self.state.commit(Change(before=job, after=stopped), now=now)
        if job is None or not job.is_live:
            del self.sagemaker.courses[name]
            self.tally.ended.append((name, ParentEnd.STOPPED))
        return True

    def _fails(self, job: Job, failure: FailureClass, policy: Policy) -> None:
        self._ends(job, "Failed", "Failed", failure=failure, policy=policy)

    def _ends(
        self,
        job: Job,
        status: str,
        secondary: str,
        *,
        failure: FailureClass | None = None,
        policy: Policy | None = None,
    ) -> None:
        """End the attempt: its instances are free, and it is decided what becomes of the job."""
        seen = self.sagemaker.ended(
            job, status=status, secondary=secondary, keeps_hosts=failure not in _DOUBTED
        )
        facts = EndFacts(job=job, seen=seen)
        if open_questions := questions(job, seen):
            facts = replace(facts, policy=policy or self.setting.policy)
            if Question.IS_RETRIED in open_questions:
                diagnosis = Diagnosis(failure_class=failure or FailureClass.UNKNOWN, advice="")
                facts = replace(facts, diagnosis=diagnosis)
        now = self.sagemaker.now
        change = settlement.settled(job, decide(facts, now=now), seen, now=now)
        self.state.commit(change, now=now)
        self._note(job, change, broke=failure is not None)

    def _note(self, job: Job, change: Change, *, broke: bool) -> None:
        end, preemptor = end_text(change), job.live_attempt.preempted_for
        by = preemptor.name if preemptor is not None and end == "preempted" else None
        ended = self.sagemaker.end(job.name, broke=broke)
        self.tally.attempts.append(self.sagemaker.row(job.name, ended, end=end, by=by))
        self.turns.discard(job.name)
        if change.after.is_final:
            del self.sagemaker.courses[job.name]
            self.tally.ended.append((job.name, ParentEnd(change.after.state.value)))

    def close(self) -> None:
        """End the replay here: what is live and warm is noted as it is."""
        self.tally.attempts += self.sagemaker.live_rows()
        for pool in list(self.state.warm_pools.values()):
            self.passes.take_warm(pool)

    def _reconcile(self) -> None:
        self.minute_put = False
        read_progress(self.turns.of(self.sagemaker.now), self.state, self.sagemaker)
        self._look_for_checkpoints()
        if not self.state.rules.spot_capacity:
            return
        for name in [
            job_name for job_name, run in self.sagemaker.runs.items() if run.earlier and run.stopped_s is None
        ]:
            self._judge_spot(self.state.jobs[name], self.sagemaker.progress(self.state.jobs[name]))

    def _look_for_checkpoints(self) -> None:
        """Look for checkpoints; as in the product, the pool is woken before, and changes are noted after."""
        if not self._seen_checkpoints():
            return
        self.passes.run()
        for name, written_at in self._seen_checkpoints().items():
            self.state.changes_attempt(steps.checkpoint_seen(self.state.jobs[name], written_at))

    def _seen_checkpoints(self) -> dict[str, datetime]:
        """Return the checkpoints that are news, by job."""
        now, max_age = self.sagemaker.now, self.setting.policy.governing.checkpoints.max_age
        others_wait, written = len(self.state.lanes) > 0, dict[str, datetime]()
        second = self.setting.event_queue.now
        for name in self.turns.of(now):
            entry, run = self.state.running[name], self.sagemaker.runs[name]
            if run.stopped_s is not None or self.turns.finds_nothing(name, run, entry, second=second):
                continue
            if is_worth_a_look(entry, others_wait=others_wait, max_age=max_age, now=now):
                written_at = self.sagemaker.saved_at(name)
                if written_at is not None and written_at != entry.checkpoint.last:
                    written[name] = written_at
                else:
                    next_s = self.sagemaker.courses[name].saves_next_after(run.trained_s(second), run.vector)
                    self.turns.found_nothing(name, run, entry, until=run.since_s + next_s)
        return written

    def fork(self, setting: Setting) -> Self:
        """Copy the pool to go its own way; values in it never change, so only containers are copied."""
        tally, state = Tally(), self.state.fork(setting.budgets)
        sagemaker = self.sagemaker.fork(setting.event_queue)
        passes = _passes(setting, state, sagemaker, tally)
        turns = self.turns.fork()
        return replace(
            self, setting=setting, state=state, sagemaker=sagemaker, passes=passes, tally=tally, turns=turns
        )


def _passes(setting: Setting, state: PoolState, sagemaker: SimulatedSageMaker, tally: Tally) -> PoolPasses:
    return PoolPasses(
        state=state, sagemaker=sagemaker, policy=setting.policy, cpu_clock=setting.cpu_clock, tally=tally
    )


_CLASSES = {failure_class.value: failure_class for failure_class in FailureClass}


def _class_of(code: str) -> FailureClass:
    """Return the class of a break; a code that names none is a failure of unknown cause."""
    return _CLASSES.get(code, FailureClass.UNKNOWN)
