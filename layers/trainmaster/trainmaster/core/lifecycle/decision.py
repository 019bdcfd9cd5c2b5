"""Decide what becomes of a job whose training job has ended: the table of ends, and their only maker."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from itertools import takewhile

from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.failures import Diagnosis
from trainmaster.core.jobs.model import WAITING, Job, JobState
from trainmaster.core.jobs.observations import Observation, TrainingJobEnd
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.jobs.run_time import trained_by
from trainmaster.core.lifecycle import retries, spot_fallback, width_changes
from trainmaster.core.lifecycle.retries import Failure, Retry, RetryAnswer
from trainmaster.core.policy import Policy
from trainmaster.core.policy.plan_windows import is_closing

_S, _C, _E = JobState, ReasonCode, TrainingJobEnd


class Question(Enum):
    """Questions that SageMaker alone does not answer; the words are those of the documents."""

    HAS_STEPS_LEFT = "it ran at a narrow width, and has steps and run time left"
    """``width_changes`` answers it."""
    LEAVES_SPOT = "the job may leave spot"
    """``spot_fallback`` answers it, which needs the policy."""
    LEFT_PLAN = "it left a training plan whose window closes"
    """The policy answers it with what is known of the plan, and a diagnosis with the exit code."""
    IS_RETRIED = "the failure is retried"
    """``retries`` answers it, which needs a diagnosis and the policy."""
    HAS_LATER_ATTEMPT = "a later attempt of the job exists"
    """If so, the table was restored to before both; only SageMaker knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of the table of ends."""

    job: JobState | None = None
    """State of the job; None: any live state."""
    says: TrainingJobEnd | None = None
    """End of the training job; None: any end."""
    only_if: Question | None = None
    becomes: JobState
    code: ReasonCode | None
    """Code of the reason; None: that recorded with the stop, or the class of a failure."""

    def fits(self, job: Job, end: TrainingJobEnd) -> bool:
        """Tell whether the row fits the job and SageMaker's report; ``only_if`` is not checked."""
        return self.job in {None, job.state} and self.says in {None, end}

    @property
    def leaves_spot(self) -> bool:
        """Whether the job is requeued and may be so on demand.

        After a restore it may not, as nothing ended of itself.
        """
        return self.becomes in WAITING and self.code is not _C.RESTORED


ENDS = (  # the first row that fits
    Row(says=_E.GONE, becomes=_S.FAILED, code=_C.DELETED_OUTSIDE),
    Row(says=_E.COMPLETED, becomes=_S.COMPLETED, code=_C.COMPLETED),
    Row(says=_E.NEVER_TRAINED, becomes=_S.PENDING, code=_C.CAPACITY),
    Row(
        says=_E.MAX_RUNTIME,
        only_if=Question.HAS_STEPS_LEFT,
        becomes=_S.PREEMPTED,
        code=_C.MAX_RUNTIME_AT_WIDTH,
    ),
    Row(says=_E.MAX_RUNTIME, becomes=_S.STOPPED, code=_C.MAX_RUNTIME),
    Row(job=_S.STOPPING, becomes=_S.STOPPED, code=None),
    Row(says=_E.MAX_WAIT, only_if=Question.LEAVES_SPOT, becomes=_S.PENDING, code=_C.SPOT_FALLBACK),
    Row(says=_E.MAX_WAIT, becomes=_S.STOPPED, code=_C.MAX_WAIT),
    Row(says=_E.NO_CAPACITY, becomes=_S.PENDING, code=_C.CAPACITY),
    Row(says=_E.FAILED, only_if=Question.LEFT_PLAN, becomes=_S.PENDING, code=_C.WINDOW),
    Row(says=_E.FAILED, only_if=Question.IS_RETRIED, becomes=_S.PENDING, code=None),
    Row(says=_E.FAILED, becomes=_S.FAILED, code=None),
    Row(job=_S.PREEMPTING, says=_E.STOPPED, becomes=_S.PREEMPTED, code=None),
    Row(says=_E.STOPPED, only_if=Question.HAS_LATER_ATTEMPT, becomes=_S.PENDING, code=_C.RESTORED),
    Row(says=_E.STOPPED, becomes=_S.STOPPED, code=_C.STOPPED_OUTSIDE),
)
_MESSAGES: Mapping[TrainingJobEnd, str] = {
    _E.GONE: "the training job was deleted in SageMaker",
    _E.COMPLETED: "the training job completed",
    _E.MAX_RUNTIME: "the training job reached its MaxRuntimeInSeconds",
    _E.MAX_WAIT: "the spot job reached its MaxWaitTimeInSeconds",
    _E.NEVER_TRAINED: "SageMaker had no instances within the pending time",
    _E.STOPPED: "someone stopped the training job in SageMaker",
}
_LEFT_PLAN = "it saved and left before the window of its training plan closes"
_STOPPED_BY_SIGNAL = 143
"""Exit code of a program that ended itself for SIGTERM, as our launcher does before a window closes."""
_RESTORED = "stopped for a later attempt, which the restored table does not know"
_NOT_RECORDED: Mapping[JobState, Reason] = {
    _S.STOPPING: Reason(code=_C.STOPPED_BY_USER, message="stopped on request"),
    _S.PREEMPTING: Reason(code=_C.PREEMPTION, message="made room for a job that ranks ahead"),
}
NO_REASON = "it gave no reason"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndFacts:
    """Facts about an attempt that is over: all that is read to decide what becomes of its job."""

    job: Job
    """The job with the attempt still live."""
    seen: Observation | None
    """SageMaker's report; None: SageMaker does not know the training job (any more)."""
    policy: Policy | None = None
    """Policy, if a question needs it."""
    diagnosis: Diagnosis | None = None
    """Diagnosis, if the training job failed."""
    hyperparameters: Mapping[str, str] = field(default_factory=dict)
    """Hyperparameters of the attempt, if the batch may be halved."""
    has_later_attempt: bool = False
    spot_records: spot_fallback.TypeRecords = field(default_factory=dict)
    """Recent records of its instance types on spot, if the policy counts them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The decision on a job whose attempt has ended."""

    becomes: JobState
    reason: Reason
    """Reason why the attempt is over, and the job with it unless it is requeued."""
    of_attempt: Reason | None = None
    """Reason to be kept with the attempt; None: the same as the job's."""
    diagnosis: Diagnosis | None = None
    """Diagnosis of a failure; None for other ends."""
    retry: Retry | None = None
    """Retry after a failure; None if there is none."""
    moves: bool = False
    """Whether it asks for on-demand instances from now on."""

    @property
    def comes_back(self) -> bool:
        return self.becomes in WAITING


_NO_STOP_OF_OURS = frozenset({_S.STARTING, _S.RUNNING})
PENDING_SLACK = timedelta(seconds=5)
"""How much earlier than planned the end may come, by SageMaker's own two stamps, as it rounds them."""
CLOCKS_APART = timedelta(minutes=1)
"""The same if our clock stands in for the stamp of the creation."""


def end_of(job: Job, seen: Observation | None) -> TrainingJobEnd:
    """Classify how the live attempt ended.

    That SageMaker had no instances follows from the facts, not from a word: it never trained, we did not stop
    it, and it waited the whole pending time.
    """
    reported = TrainingJobEnd.of(seen)
    stopped_or_failed = seen is not None and seen.status in {"Stopped", "Failed"}
    # A stop of ours explains the end by itself, so only attempts that nobody asked to stop can have waited in
    # vain.
    waits_in_vain = stopped_or_failed and job.state in _NO_STOP_OF_OURS and _pending_time_is_over(job, seen)
    return TrainingJobEnd.NEVER_TRAINED if waits_in_vain else reported


def _pending_time_is_over(job: Job, seen: Observation | None) -> bool:
    live = job.live_attempt
    if seen is None or seen.ended_at is None or not seen.never_trained or live.training_since is not None:
        return False
    sent = live.max_pending or seen.max_pending
    if sent is None:
        return False
    if seen.created_at is not None:  # two stamps of one clock: ours may be minutes off
        return seen.ended_at - seen.created_at >= sent - PENDING_SLACK
    return seen.ended_at - live.claim.at >= sent - CLOCKS_APART


def questions(job: Job, seen: Observation | None) -> frozenset[Question]:
    """Return the questions to be answered before the end can be decided; none for most ends."""
    rows = _rows_for(job, seen)
    answered = {Question.LEAVES_SPOT, Question.HAS_STEPS_LEFT}
    open_questions = {row.only_if for row in rows if row.only_if is not None} - answered
    if job.live_attempt.plan_arn is None:
        open_questions -= {Question.LEFT_PLAN}
    if spot_fallback.may_move(job) and any(row.leaves_spot for row in rows):
        open_questions.add(Question.LEAVES_SPOT)
    return frozenset(open_questions)


def decide(facts: EndFacts, *, now: datetime) -> End:
    """Decide what becomes of the job: the first row that fits, and what the rules of that row add.

    Args:
        facts: Facts about a training job that has ended, with an answer to each of ``questions``.
        now: Stands for the end of the attempt if SageMaker does not report it.
    """
    ended_at = (facts.seen.ended_at if facts.seen else None) or now
    open_questions = questions(facts.job, facts.seen)
    answer = _answer_to_failure(facts, ended_at) if Question.IS_RETRIED in open_questions else None
    row = _row(facts, open_questions, answer, ended_at)
    if row.only_if is Question.LEFT_PLAN:
        answer = None  # it is no failure
    reason = answer.reason if answer else _reason(facts, row)
    moved = None
    if row.leaves_spot and Question.LEAVES_SPOT in open_questions:
        ended = spot_fallback.Ended(seen=facts.seen, until=ended_at, records=facts.spot_records)
        moved = spot_fallback.at_end(facts.job, ended, reason, _policy(facts))
    return End(
        becomes=row.becomes,
        reason=moved or reason,
        of_attempt=answer.of_attempt if answer else None,
        diagnosis=facts.diagnosis if answer else None,
        retry=answer.retry if answer else None,
        moves=moved is not None,
    )


def _rows_for(job: Job, seen: Observation | None) -> tuple[Row, ...]:
    """Return the rows that may decide: up to the first that fits whatever the answers are."""
    assert job.is_live, job.state
    end = end_of(job, seen)
    rows = [row for row in ENDS if row.fits(job, end)]
    open_rows = tuple(takewhile(lambda row: row.only_if is not None, rows))
    return (*open_rows, rows[len(open_rows)])


def _row(
    facts: EndFacts, open_questions: frozenset[Question], answer: RetryAnswer | None, ended_at: datetime
) -> Row:
    answers = {
        Question.HAS_STEPS_LEFT: width_changes.has_steps_left(facts.job, facts.seen, until=ended_at),
        Question.LEFT_PLAN: Question.LEFT_PLAN in open_questions and _left_plan(facts, ended_at),
        Question.LEAVES_SPOT: Question.LEAVES_SPOT in open_questions
        and spot_fallback.may_leave(facts.job, _policy(facts)),
        Question.IS_RETRIED: answer is not None and answer.retry is not None,
        Question.HAS_LATER_ATTEMPT: facts.has_later_attempt,
    }
    rows = _rows_for(facts.job, facts.seen)
    return next(row for row in rows if row.only_if is None or answers[row.only_if])


def _left_plan(facts: EndFacts, ended_at: datetime) -> bool:
    """Tell whether the program ended by itself on a training plan shortly before its window closes.

    Its launcher does so where no stop of ours has come.
    """
    pool = _policy(facts).pool(facts.job.spec.pool)
    plan = pool.seen_plans.get(facts.job.live_attempt.plan_arn or "") if pool else None
    code = facts.diagnosis.exit_code if facts.diagnosis else None
    return plan is not None and code == _STOPPED_BY_SIGNAL and is_closing(plan, ended_at)


def _answer_to_failure(facts: EndFacts, ended_at: datetime) -> RetryAnswer:
    seen = facts.seen
    assert seen is not None, f"{facts.job.name} did not fail"
    assert facts.diagnosis is not None, f"no diagnosis of the failure of {facts.job.name}"
    failure = Failure(
        job=facts.job,
        trained=trained_by(ended_at, facts.job.live_attempt, seen),
        text=seen.failure_reason or NO_REASON,
        diagnosis=facts.diagnosis,
        hyperparameters=facts.hyperparameters,
    )
    return retries.answer(failure, _policy(facts).governing.recovery)


def _reason(facts: EndFacts, row: Row) -> Reason:
    if row.code is None:
        return facts.job.reason or _NOT_RECORDED[facts.job.state]
    if row.code is _C.RESTORED:
        return Reason(code=row.code, message=_RESTORED)
    if row.code is _C.MAX_RUNTIME_AT_WIDTH:
        return width_changes.run_time_over(facts.job)
    if row.code is _C.WINDOW:
        return Reason(code=row.code, message=_LEFT_PLAN)
    end = end_of(facts.job, facts.seen)
    if end is _E.NO_CAPACITY and facts.seen is not None and facts.seen.failure_reason is not None:
        return Reason(code=row.code, message=facts.seen.failure_reason)
    return Reason(code=row.code, message=_MESSAGES[end])


def _policy(facts: EndFacts) -> Policy:
    assert facts.policy is not None, f"no policy to decide about {facts.job.name}"
    return facts.policy
