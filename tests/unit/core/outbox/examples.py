"""One notice of each kind, as the code makes it; docs/events.md shows them."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from trainmaster.core.arrays.array_model import Array, TaskEnds
from trainmaster.core.jobs.attempts import LossWatch, Reason, StopsInARow
from trainmaster.core.jobs.end_conditions import Condition, ConditionKind, Dependencies, ParentEnd, Root
from trainmaster.core.jobs.failures import Diagnosis, FailureClass
from trainmaster.core.jobs.futile_preemptions import after_another
from trainmaster.core.jobs.index_sets import all_bits
from trainmaster.core.jobs.instances import Choice, Shape
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.reason_codes import ReasonCode, parse_code
from trainmaster.core.jobs.start_troubles import AccountRefusals, StartTrouble
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.outbox import (
    additions_refused_notice,
    budget_notice,
    messages_of,
    rule_violated_notice,
    to_tell,
    unmanaged_notice,
)
from trainmaster.core.outbox.messages import NoticeKind, OutboxMessage
from trainmaster.core.outbox.texts.arrays_and_dependents import (
    array_ended_notice,
    array_held_notice,
    dependents_ended_notice,
)
from trainmaster.core.outbox.texts.preemptions import futile_preemption_notice
from trainmaster.core.policy.job_rules import Mode
from trainmaster.core.rules.violation import Outcome, Violation, ViolationRecord

from tests.arrays import array_of
from tests.builders import ENTRY, NOON, attempt, changed, job, live_job, minutes, of, waiting

_OOM = Diagnosis(
    failure_class=FailureClass.GPU_OOM,
    advice="Use a smaller batch, activation checkpointing or larger GPUs.",
    evidence="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB",
    exit_code=1,
)
_BUG = Diagnosis(
    failure_class=FailureClass.USER_CODE,
    advice="Fix the program; a retry would fail the same way.",
    evidence="ModuleNotFoundError: No module named 'flash_attn'",
    exit_code=1,
)
_NO_TAG = Violation(
    rule="required_tags",
    field="Tags",
    message="lack model_name",
    hint="add it",
    mode=Mode.ENFORCE,
)
_NO_VPC = Violation(
    rule="vpc_required", field="VpcConfig", message="is missing", hint="name subnets", mode=Mode.AUDIT
)
_HALF_PAST = NOON + minutes(30)


def running(**live: Any) -> Job:
    """Trains since noon, on spot."""
    shape = Shape(vector=of(2, "ml.p4d.24xlarge", spot=True))
    values: dict[str, Any] = {"training_since": NOON, "shape": shape, "last_checkpoint": NOON + minutes(20)}
    return live_job("llama-7", team="vision", ver=4, live=attempt("llama-7", **values | live))


def _news(**live: Any) -> Change:
    before = running()
    assert before.live is not None
    return Change(before=before, after=replace(before, live=changed(before.live, **live)))


def _end(
    state: JobState, code: str, message: str, *, ended: Mapping[str, Any] | None = None, **after: Any
) -> Change:
    before = running()
    assert before.live is not None
    reason = Reason(code=parse_code(code), message=message)
    lost = minutes(0) if state in (JobState.COMPLETED, JobState.STOPPED) else minutes(10)
    over = changed(before.live, **{"ended_at": _HALF_PAST, "reason": reason, "lost": lost, **(ended or {})})
    values: dict[str, Any] = {"state": state, "live": None, "checkpointed": minutes(20)}
    if state in (JobState.FAILED, JobState.STOPPED, JobState.COMPLETED):
        values |= {"reason": reason, "ended_at": _HALF_PAST}
    else:
        values |= {"attempt": 1}
    return Change(before=before, after=changed(before, **values | after), ended=over)


def _preempted() -> Change:
    """Stopped again, before it trained, for the job that it made room for the last time."""
    taken = steps.preempted_for(running(), waiting("urgent-3", team="vision"))
    assert taken.live is not None
    assert taken.live.preempted_for is not None
    assert taken.reason is not None
    ended = {"preempted_for": taken.live.preempted_for, "training_since": None, "lost": minutes(0)}
    after = {
        "preemptions": 3,
        "stopped_for": StopsInARow(preemptor=taken.live.preempted_for, count=2),
        "startups": {"preemption": 1800},
    }
    return _end(JobState.PREEMPTED, "preemption", taken.reason.message, ended=ended, **after)


def _unserved() -> Change:
    change = _end(JobState.PENDING, "capacity", "CapacityError: no capacity for the requested type")
    futile = after_another(
        None, vector=of(8, "ml.p4d.24xlarge"), choice=Choice.FIRST_FIT, ended_at=_HALF_PAST, now=_HALF_PAST
    )
    return replace(change, after=changed(change.after, futile=futile))


CHANGES: Mapping[NoticeKind, Change] = {
    NoticeKind.JOB_COMPLETED: _end(JobState.COMPLETED, "completed", "the training job completed", cents=2526),
    NoticeKind.JOB_STOPPED: _end(
        JobState.STOPPED,
        "stopped-by-user",
        "stopped by arn:aws:iam::111122223333:role/vision-lead",
    ),
    NoticeKind.JOB_FAILED: _end(
        JobState.FAILED, "user-code", "AlgorithmError: ExecuteUserScriptError", ended={"diagnosis": _BUG}
    ),
    NoticeKind.JOB_RETRIED: _end(
        JobState.PENDING,
        "gpu-oom",
        "AlgorithmError: ExecuteUserScriptError",
        ended={"diagnosis": _OOM},
        retries=1,
        halvings=1,
        not_before=_HALF_PAST + minutes(1),
        waiting=Reason(code=ReasonCode.BACKOFF, message="gpu-oom, retry 1 of 3"),
    ),
    NoticeKind.JOB_PREEMPTED: _preempted(),
    NoticeKind.JOB_IDLE: _news(idle_since=NOON + minutes(5), stop_due=NOON + minutes(35)),
    NoticeKind.JOB_BUSY_AGAIN: Change(before=running(idle_since=NOON + minutes(5)), after=running()),
    NoticeKind.JOB_REQUEUED: _end(
        JobState.PREEMPTED,
        "idle-requeue",
        "its GPUs did nothing since 2026-11-02 12:05 UTC",
    ),
    NoticeKind.JOB_UNDERUSED: _news(underused_since=NOON + minutes(5)),
    NoticeKind.LOSS_WARNING: _news(
        loss=LossWatch(
            finding=Reason(
                code=ReasonCode.LOSS_NOT_FINITE, message="train:loss is nan at step 120: it is not finite"
            ),
            stop_due=NOON + minutes(35),
        )
    ),
    NoticeKind.JOB_UNGUARDED: _news(
        unguarded=Reason(
            code=ReasonCode.ALARM_QUOTA,
            message="CloudWatch allows no more alarms in this account",
        )
    ),
    NoticeKind.CHECKPOINT_OVERDUE: _news(checkpoint_overdue=True),
    NoticeKind.MOVED_TO_ON_DEMAND: _end(
        JobState.PREEMPTED,
        "spot-fallback",
        "SageMaker took its instances away 4 times, 3 are allowed",
        on_demand=True,
        interruptions=4,
    ),
    NoticeKind.STAYS_ON_SPOT: _news(
        stays_on_spot=Reason(
            code=ReasonCode.NO_ON_DEMAND_CAPACITY, message="pool p4 has no on-demand ml.p4d.24xlarge"
        ),
        interruptions=4,
    ),
    NoticeKind.START_REFUSED: Change(
        before=job("llama-7", team="vision", ver=4, starts=StartTrouble(by_account=AccountRefusals(count=4))),
        after=job(
            "llama-7",
            team="vision",
            ver=4,
            starts=StartTrouble(by_account=AccountRefusals(count=5)),
            waiting=Reason(
                code=ReasonCode.ACCOUNT_LIMIT,
                message="AWS refused it 5 times in a row: The account-level service limit"
                " 'ml.p4d.24xlarge for training job usage' is 1 Instances",
            ),
        ),
    ),
}
RECORD = ViolationRecord(
    at=NOON - timedelta(minutes=1),
    training_job_name="by-hand-1",
    team="vision",
    role_arn="arn:aws:iam::111122223333:role/vision-training",
    unmanaged=True,
    outcome=Outcome.STOPPED,
    violations=(_NO_TAG,),
)
_BESIDE: Mapping[NoticeKind, OutboxMessage] = {
    NoticeKind.UNMANAGED_JOB: to_tell(
        unmanaged_notice(RECORD, runs=True), cause="unmanaged#by-hand-1", at=NOON
    ),
    NoticeKind.RULE_VIOLATED: to_tell(
        rule_violated_notice(
            replace(
                RECORD,
                training_job_name="llama-7",
                unmanaged=False,
                outcome=Outcome.AUDITED,
                violations=(_NO_VPC,),
            )
        ),
        cause="audited#llama-7",
        at=NOON,
    ),
    NoticeKind.BUDGET_WARNING: to_tell(
        budget_notice("vision", month="2026-11", spent_cents=4_100_000, limit_cents=5_000_000),
        cause="vision#2026-11",
        at=NOON,
    ),
    NoticeKind.PLATFORM_WARNING: to_tell(
        additions_refused_notice(
            "p5", "KeepAlivePeriodInSeconds", "ResourceLimitExceeded: the longest keep-alive period is 3600"
        ),
        cause="p5#addition-refused",
        at=NOON,
    ),
}


def _futile() -> OutboxMessage:
    notice = futile_preemption_notice(_unserved())
    assert notice is not None
    return to_tell(notice, cause="01JBN8Q0000000000000000000#000005", at=_HALF_PAST)


def _dependents_ended() -> OutboxMessage:
    root = Root(
        name="prepare", entry_id=ENTRY, team="vision", message="failed (user-code): exit code 1 in train.py"
    )
    condition = Condition(
        kind=ConditionKind.AFTER_OK, job="prepare", entry_id=ENTRY, team="vision", end=ParentEnd.FAILED
    )
    after = Dependencies(conditions=(condition,), root=root)
    first = job("llama-7", state=JobState.STOPPED, team="vision", after=after)
    return to_tell(dependents_ended_notice(first), cause=f"{ENTRY}#dependents#vision", at=_HALF_PAST)


def _ended_array() -> Array:
    failed = 0b1 << 7 | 0b1 << 8
    ends = TaskEnds(completed=all_bits(64) & ~failed, failed=failed)
    template = job("sweep", team="vision")
    return array_of(indices=tuple(range(64)), template=template, unexpanded=0, ends=ends)


def _array_ended() -> OutboxMessage:
    array = _ended_array()
    return to_tell(array_ended_notice(array), cause=array.entry_id, at=_HALF_PAST)


def _array_held() -> OutboxMessage:
    array = replace(_ended_array(), ends=TaskEnds(failed=1023), unexpanded=all_bits(64) & ~1023)
    notice = array_held_notice(array, "image")
    return to_tell(notice, cause=f"{array.entry_id}#000012", at=_HALF_PAST)


def _only(change: Change) -> OutboxMessage:
    (message,) = [one for one in messages_of(change, at=_HALF_PAST) if one.notice is not None]
    return message


EXAMPLES: Mapping[NoticeKind, OutboxMessage] = {
    **{kind: _only(change) for kind, change in CHANGES.items()},
    **_BESIDE,
    NoticeKind.PREEMPTION_FUTILE: _futile(),
    NoticeKind.DEPENDENTS_ENDED: _dependents_ended(),
    NoticeKind.ARRAY_ENDED: _array_ended(),
    NoticeKind.ARRAY_HELD: _array_held(),
}
