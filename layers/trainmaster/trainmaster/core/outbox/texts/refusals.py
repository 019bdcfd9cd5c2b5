"""Notices about what AWS refuses or does unexpectedly, to a job's owner and to operators of the stack."""

from enum import StrEnum

from trainmaster.core.jobs.attempts import Attempt, Reason
from trainmaster.core.jobs.model import Job
from trainmaster.core.jobs.observations import KNOWN_STATUSES
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle.change import Change, status_is_news
from trainmaster.core.lifecycle.refused_starts import JOBS_UNTIL_PAUSE
from trainmaster.core.outbox.messages import Notice, NoticeKind
from trainmaster.core.outbox.texts.wording import Words, quoted

OPERATORS = "operators"
"""Stands in place of a team in notices to those who operate the stack."""
REFUSALS_UNTIL_TOLD = 5


class PlatformSubject(StrEnum):
    """Subjects of a Platform Warning, which programs match."""

    ADDITION_REFUSED = "addition-refused"
    UNKNOWN_STATUS = "unknown-status"
    WARM_POOLS_NOT_MATCHED = "warm-pools-not-matched"
    WARM_POOLS_NOT_KEPT = "warm-pools-not-kept"
    CHECKPOINTS_UNREADABLE = "checkpoints-unreadable"
    JOB_FAULT = "job-fault"
    STARTS_PAUSED = "starts-paused"
    PREEMPTION_FUTILE = "preemption-did-not-help"
    PLAN_UNREADABLE = "plan-unreadable"


def platform_notice(subject: str, words: Words, *, job: str | None = None) -> Notice:
    """Return a notice to operators; ``leave_once`` leaves it once for each pool and subject."""
    return Notice(
        kind=NoticeKind.PLATFORM_WARNING,
        team=OPERATORS,
        job=job,
        what=words.what,
        why=words.why,
        todo=words.todo,
        undo=words.undo,
        detail={"subject": subject},
    )


def start_refused_notice(change: Change) -> Notice | None:
    """Return the notice of a job's fifth refusal in a row; None while a pause reports them to operators."""
    before, after, why = _refusals(change.before), _refusals(change.after), change.after.waiting
    is_one_of_many = change.role is not None and change.role.after.pause is not None
    if not before < REFUSALS_UNTIL_TOLD <= after or why is None or is_one_of_many:
        return None
    job = change.after
    return Notice(
        kind=NoticeKind.START_REFUSED,
        team=job.spec.team,
        job=job.name,
        what=f"AWS has refused to start job {job.name} {after} times in a row. It waits and is retried.",
        why=quoted(why.message),
        todo=(
            f"`trainmaster why {job.name}` shows AWS's words. {_remedy(why)}, or change what"
            " the request asks for and submit it under another name."
        ),
        undo=f"`trainmaster cancel {job.name}` ends it.",
        detail={"refusals": after, "reason": why.code},
    )


def _remedy(why: Reason) -> str:
    if why.code is ReasonCode.REFUSED:
        return "Have the right granted that they name"
    return "Ask Service Quotas for more"


def starts_paused_notice(change: Change) -> Notice | None:
    """Return the notice of the refusal that begins a pause: no job is lost, and an operator has to act."""
    role = change.role
    if role is None or role.after.pause is None or not role.begins_pause:
        return None
    pool, arn, launcher = change.after.spec.pool, quoted(role.after.role_arn), role.after.launcher
    sender = (
        "the role of the function `schedule`" if launcher is None else f"launcher role {quoted(launcher)}"
    )
    return platform_notice(
        PlatformSubject.STARTS_PAUSED,
        Words(
            what=f"AWS refused {JOBS_UNTIL_PAUSE} different jobs of pool {pool} in a row. Starts with role"
            f" {arn} are paused there: the jobs wait, none fails, and one at a time tries again, at most 15"
            " minutes apart.",
            why=quoted(role.after.pause.message),
            todo=f"Look for what changed for all of them: the rights of {sender} (CreateTrainingJob,"
            " PassRole), the stack's parameter TrainingRoleArns, a service control policy, the role itself,"
            " its subnets and keys. The first start that AWS takes ends the pause.",
        ),
    )


def unknown_status_notice(change: Change) -> Notice | None:
    """Return the notice of a training job in a status that this version does not know."""
    live = _live_with_news(change)
    if live is None or live.progress is None:
        return None
    status = quoted(live.progress.status or "")
    known = ", ".join(sorted(KNOWN_STATUSES))
    return platform_notice(
        PlatformSubject.UNKNOWN_STATUS,
        Words(
            what=f"Training job {live.training_job_name} is in the unknown status {status}."
            " It counts as running and keeps its instances.",
            why=f"The known ones are {known}: what it means for the job is unknown.",
            todo=f"Look at it in SageMaker. `trainmaster cancel {change.after.name}` stops it.",
        ),
        job=change.after.name,
    )


def additions_refused_notice(pool: str, additions: str, why: str) -> Notice:
    """Return the notice that AWS takes a pool's jobs only without what the pool's policy adds to them."""
    return platform_notice(
        PlatformSubject.ADDITION_REFUSED,
        Words(
            what=f"AWS refuses {additions}, which pool {pool} adds to its training jobs."
            " They are started without.",
            why=quoted(why),
            todo="Lower `warm_pool.keep_alive` or `capacity_wait` of the pool, or raise the account's quota.",
        ),
    )


def warm_pools_not_matched_notice(pool: str, missed: int) -> Notice:
    """Return the notice that starts which counted on a warm pool landed elsewhere, time after time."""
    return platform_notice(
        PlatformSubject.WARM_POOLS_NOT_MATCHED,
        Words(
            what=f"The last {missed} starts of pool {pool} that counted on warm instances did not get them.",
            why="SageMaker started them on others and still keeps the warm ones, which are paid for.",
            todo="Compare the requests of such jobs, or set `warm_pool.keep_alive` of the pool to 0s.",
        ),
    )


def _refusals(job: Job) -> int:
    by_account, by_request = job.starts.by_account, job.starts.by_request
    return max(by_account.count if by_account else 0, by_request.count if by_request else 0)


def _live_with_news(change: Change) -> Attempt | None:
    return change.after.live if status_is_news(change) else None
