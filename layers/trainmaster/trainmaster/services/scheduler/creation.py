"""Create the training job of a claimed attempt, once, whatever SageMaker answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from trainmaster.core.errors import (
    AccountLimitError,
    InstanceLimitError,
    LauncherRefusedError,
    NameTakenError,
    OutcomeUnknownError,
    ServerFaultError,
    TrainingRefusedError,
    TrainmasterError,
    UnavailableError,
)
from trainmaster.core.jobs.model import Job
from trainmaster.core.lifecycle import steps
from trainmaster.core.outbox import additions_refused_notice, to_tell
from trainmaster.core.outbox.texts.refusals import PlatformSubject
from trainmaster.core.request.request import attempt_request, is_ours
from trainmaster.ports import TrainingApi
from trainmaster.services.scheduler.context import PassContext


@dataclass(frozen=True, slots=True, kw_only=True)
class Created:
    """Describes an attempt that SageMaker has. Nothing may fail between this and its record."""

    job: Job
    """The job, with what was really sent."""
    arn: str
    without: Mapping[str, int] = field(default_factory=dict)
    """Parts that were left out of the request because AWS refused them."""
    refusal: TrainmasterError | None = None


def created(job: Job, body: Mapping[str, Any], context: PassContext) -> Created:
    """Create the attempt; a request that AWS may refuse for our additions is sent again without them.

    Name and attempt stay the same.
    """
    request = create_request(job, body, context)
    try:
        return Created(job=steps.sent(job, request), arn=_create(job, request, context))
    except (TrainingRefusedError, AccountLimitError) as error:
        plain = steps.without_additions(job)
        bare = create_request(plain, body, context, adds=False)
        if bare == request or not _may_go_without(job, error):
            raise
        refusal = error
    arn = _create(plain, bare, context)
    return Created(job=steps.sent(plain, bare), arn=arn, without=_left_out(request, bare), refusal=refusal)


def _may_go_without(job: Job, error: TrainmasterError) -> bool:
    """Tell whether to try without our additions: an expected warm pool needs its keep-alive period.

    A launcher role that could not be assumed has not even sent the request.
    """
    if job.live_attempt.claim.reuses is not None or isinstance(
        error, InstanceLimitError | LauncherRefusedError
    ):
        return False
    return job.starts.by_account is None or not isinstance(error, AccountLimitError)


def _left_out(request: Mapping[str, Any], bare: Mapping[str, Any]) -> dict[str, int]:
    return {
        name: count
        for part in ("ResourceConfig", "StoppingCondition")
        for name, count in request[part].items()
        if name not in bare[part]
    }


def tell_of_additions(start: Created, context: PassContext) -> None:
    """Notify operators once which of our additions the account refuses; nothing if all were accepted.

    The subject names no numbers: those are the team's choice, and each subject is kept for good.
    """
    if start.refusal is None:
        return
    subject = f"{PlatformSubject.ADDITION_REFUSED}:{','.join(sorted(start.without))}"
    without = ", ".join(f"{name}={count}" for name, count in start.without.items())
    notice = additions_refused_notice(context.pool, without, str(start.refusal))
    message = to_tell(notice, cause=f"{context.pool}#{subject}", at=context.clock())
    context.store.leave_once(context.pool, message, subject=subject)


def create_request(
    job: Job, body: Mapping[str, Any], context: PassContext, *, adds: bool = True
) -> dict[str, Any]:
    return attempt_request(
        body,
        attempt=job.live_attempt,
        job=job,
        stack=context.stack,
        capacity_wait=context.pool_policy.capacity_wait if adds else None,
    )


def _create(job: Job, request: Mapping[str, Any], context: PassContext) -> str:
    try:
        return context.training.create(request, launcher=context.launcher(job.spec.team))
    except (NameTakenError, ServerFaultError, OutcomeUnknownError) as error:
        arn = _looked_up(job, context)
        if arn is not None:
            return arn
        if not isinstance(error, NameTakenError):
            raise
    return _create_again(job, request, context)


def _create_again(job: Job, request: Mapping[str, Any], context: PassContext) -> str:
    """Try again after the name was in use and is not found: deleted, or too new to be seen."""
    try:
        return context.training.create(request, launcher=context.launcher(job.spec.team))
    except NameTakenError as error:
        name = job.live_attempt.training_job_name
        raise OutcomeUnknownError(f"{name} is in use and cannot be seen yet") from error


def _looked_up(job: Job, context: PassContext) -> str | None:
    """Look the attempt up as ``adoptable`` does; while that fails, the slot must stay taken."""
    try:
        return adoptable(job, context.training, now=context.clock())
    except UnavailableError as error:
        name = job.live_attempt.training_job_name
        raise OutcomeUnknownError(f"{name} may or may not have been created: {error}") from error


TAGS_WITHIN = timedelta(seconds=60)
"""How long after the claim a training job without tags may still turn out to be ours."""


def adoptable(job: Job, training: TrainingApi, *, now: datetime) -> str | None:
    """Return the ARN of the training job that already has the attempt's name; None if there is none.

    Raises:
        NameTakenError: It is not ours: another entry, attempt or request made it.
        OutcomeUnknownError: It shows no tags yet, which would say whose it is.
    """
    name = job.live_attempt.training_job_name
    seen = training.describe(name)
    if seen is None:
        return None
    tags = training.tags(seen.training_job_arn)
    if is_ours(tags, job):
        return seen.training_job_arn
    if not tags and now - job.live_attempt.claim.at < TAGS_WITHIN:
        raise OutcomeUnknownError(f"{name} shows no tags yet")
    raise NameTakenError(
        f"a training job named {name!r} exists already and was not started for this job; "
        "submit under another name",
    )
