"""The start protocol: claim, create under a name that is a pure function of the attempt, record.

Dying after the claim leaves ``starting`` until the lease runs out; dying after the create leaves a training
job under the known name. In both cases the reconciler checks whether it exists and resumes from there, so
an attempt is created at most once and never lost.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from trainmaster.core import rules
from trainmaster.core.errors import (
    AccountLimitError,
    InstanceLimitError,
    LostRaceError,
    NameTakenError,
    OtherLimitError,
    OutcomeUnknownError,
    ThrottledError,
    TrainingRefusedError,
    UnavailableError,
    UnclassifiedTrainingError,
    UnreachableError,
)
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.instances import Capacity
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.observations import Observation
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.jobs.start_troubles import AccountRefusals
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.lifecycle.claims import attempt_for
from trainmaster.core.lifecycle.refused_starts import Trial
from trainmaster.core.lifecycle.shape_notes import shape_note
from trainmaster.core.lifecycle.unserved_attempts import after_put_off
from trainmaster.core.lifecycle.width_changes import (
    is_narrowable,
    is_prolonged,
    run_time_refused,
    width_refused,
)
from trainmaster.core.planning.account_limits import RECENT_END, limit_after, refused_again
from trainmaster.core.planning.actions import Start
from trainmaster.core.planning.apply import Changes, Guard, applied
from trainmaster.core.planning.changes import LimitForgotten
from trainmaster.core.planning.throttles import Throttle
from trainmaster.core.policy.job_rules import Mode
from trainmaster.core.records import PoolState, WriteCondition
from trainmaster.ports import TrainingApi
from trainmaster.services.job_steps import change_job
from trainmaster.services.scheduler import role_trials
from trainmaster.services.scheduler.conditions import condition_of
from trainmaster.services.scheduler.context import PassContext
from trainmaster.services.scheduler.creation import create_request, created, tell_of_additions

MOST_NAMED = 5
"""Violations that a reason names; the others are counted."""


def forbidden(job: Job, body: Mapping[str, Any], context: PassContext) -> bool:
    """Fail a job that the rules in force no longer allow, before it claims anything. Raises LostRaceError."""
    violations = rules.check(body, team=job.spec.team, policy=context.policy)
    enforced = [violation for violation in violations if violation.mode is Mode.ENFORCE]
    if not enforced:
        return False
    named = "; ".join(
        f"{violation.rule}: {violation.field} {violation.message}" for violation in enforced[:MOST_NAMED]
    )
    rest = f"; and {len(enforced) - MOST_NAMED} more" if len(enforced) > MOST_NAMED else ""
    reason = Reason(code=ReasonCode.FAILED_TO_START, message=f"the policy no longer allows it: {named}{rest}")
    after = steps.failed(job, reason=reason, now=context.clock())
    condition = WriteCondition(policy_version=context.policy_version)
    context.store.commit([Change(before=job, after=after)], at=context.clock(), condition=condition)
    return True


def check_request(job: Job, action: Start, body: Mapping[str, Any], context: PassContext) -> None:
    """Build the request before anything is claimed; raises if that is not possible."""
    create_request(_claim_of(job, action, context, at=context.clock()).after, body, context)


def claim(job: Job, action: Start, context: PassContext) -> Job:
    """Claim the slot. Raises LostRaceError if the pool or the job has changed."""
    at = context.clock()
    change = _claim_of(job, action, context, at=at)
    probes = role_trials.probe_of(action, context)
    condition = replace(condition_of(applied(action), context), probes=probes)
    (claimed,) = context.store.commit([change], at=at, condition=condition)
    if condition.probes is not None:
        context.roles.note(condition.probes)
    return claimed


def claim_all(claims: Sequence[tuple[Job, Start]], context: PassContext) -> tuple[Job, ...]:
    """Claim the slots of starts that need nothing but free instances: all of them or none.

    Raises LostRaceError if the pool or one of the jobs has changed.
    """
    at = context.clock()
    most: dict[Capacity, int] = {}
    warm: dict[Capacity, int] = {}
    throttles: dict[str, Throttle] = {}
    before: Counter[Capacity] = Counter()
    for _, action in claims:
        guard = applied(action).guard
        # Each bound holds after the claims before it, so what those take is subtracted; the tightest counts.
        room = {capacity: count - before[capacity] for capacity, count in (guard.most_used or {}).items()}
        most |= {capacity: min(most.get(capacity, count), count) for capacity, count in room.items()}
        warm |= guard.warm or {}
        throttles |= {throttle.array: throttle for throttle in guard.throttles}
        before.update(action.shape.vector)
    changes = [_claim_of(job, action, context, at=at) for job, action in claims]
    together = Guard(most_used=most, warm=warm, throttles=tuple(throttles.values()))
    condition = condition_of(Changes(guard=together), context)
    return context.store.commit(changes, at=at, condition=condition)


def _claim_of(job: Job, action: Start, context: PassContext, *, at: datetime) -> Change:
    attempt = attempt_for(job, action, pool=context.pool_policy, policy=context.policy, at=at)
    after = steps.claim(job, attempt, after_stops=action.ends_hold)
    return Change(before=job, after=after, note=shape_note(after))


def launch(job: Job, body: Mapping[str, Any], context: PassContext, trial: Trial) -> bool:
    """Create the claimed attempt and record the result: a start, a delay, or a refusal.

    Returns:
        True if SageMaker accepted it.

    Raises:
        OutcomeUnknownError: The result is unknown; the lease keeps the slot until the reconciler finds out.
        AccountLimitError: A limit of the account forbids it; the job waits out a back-off of its own.
        ThrottledError: The account calls too often; the job waits in its turn again.
        UnreachableError: Nothing was sent; the job waits out a back-off, and others would fare no better.
    """
    try:
        start = created(job, body, context)
    except NameTakenError as error:
        _give_up(job, Reason(code=ReasonCode.NAME_TAKEN, message=str(error)), context)
    except TrainingRefusedError as error:
        _refused_for_its_request(job, error, trial, context)
    except UnclassifiedTrainingError as error:
        message = str(error)
        _release(job, lambda current: steps.puzzled(current, message=message, now=context.clock()), context)
    except OutcomeUnknownError:
        raise
    except UnavailableError as error:
        _put_back(job, error, context)
        if isinstance(error, AccountLimitError | ThrottledError | UnreachableError):
            raise
    else:
        _record(start.job, start.arn, context)
        tell_of_additions(start, context)
        return True
    return False


def _put_back(job: Job, error: UnavailableError, context: PassContext) -> None:
    reason = Reason(code=ReasonCode.UNAVAILABLE, message=str(error))
    if isinstance(error, AccountLimitError):
        refusals = _refused(job, context)
        _release(job, lambda current: _refused_step(current, refusals, error), context)
    elif isinstance(error, ThrottledError):
        _release(job, lambda current: steps.back_in_turn(current, reason), context)
    else:
        _release(job, lambda current: steps.put_back(current, reason=reason, now=context.clock()), context)


def _refused_step(job: Job, refusals: AccountRefusals, error: AccountLimitError) -> Job:
    refused = steps.refused_by_account(job, refusals, str(error))
    if is_for_run_time(job, error):
        return run_time_refused(job, refused)
    if may_be_of_instances(job, error):
        return width_refused(job, refused, left=error.instances_left)
    return refused


def is_for_run_time(job: Job, error: AccountLimitError) -> bool:
    """Tell whether a limit of the account may have refused the run time that a narrow width prolonged."""
    counts_instances = isinstance(error, InstanceLimitError) or error.instances_left is not None
    return is_prolonged(job) and not counts_instances


def may_be_of_instances(job: Job, error: AccountLimitError) -> bool:
    """Tell whether a limit of the account may have refused the number of instances."""
    return not isinstance(error, OtherLimitError) and not is_for_run_time(job, error)


def _refused(job: Job, context: PassContext) -> AccountRefusals:
    """Compute the job's next refusal; its own claim, which is still counted, is not held by the pool."""
    at, state, vector = context.clock(), context.pools.pool_state(context.pool), job.vector
    ends = [end for capacity in vector if (end := state.last_end.get(capacity)) is not None]
    return refused_again(
        job.starts.by_account,
        held={capacity: max(_held(state, capacity) - count, 0) for capacity, count in vector.items()},
        soon=is_narrowable(job) or any(at - end < RECENT_END for end in ends),
        at=at,
        seed=job.spec.entry_id,
    )


def _record(job: Job, arn: str, context: PassContext) -> None:
    """Record the ARN, unless an event or the reconciler was faster.

    A cancel in between leaves ``stopping`` with the ARN: the next look sends the stop.
    """

    def recorded(current: Job) -> Change | None:
        live = current.live
        if live is None or live.number != job.attempt or live.training_job_arn is not None:
            return None
        taken = steps.recorded(current, training_job_arn=arn, now=context.clock())
        return Change(before=current, after=steps.as_sent(taken, job.live_attempt))

    change = recorded(job)
    records = context.records if context.beside.hands > 1 else None
    if records and change and records.write(change, store=context.store, clock=context.clock):
        return
    read = partial(context.reader.job, job.name)
    change_job(job, recorded, read=read, store=context.store, clock=context.clock)


def _give_up(job: Job, reason: Reason, context: PassContext) -> None:
    _release(job, lambda current: steps.failed(current, reason=reason, now=context.clock()), context)


def _release(job: Job, step: Callable[[Job], Job], context: PassContext) -> None:
    """Free the slot of an attempt that was not created; a cancel in between makes the job ``stopped``."""
    at = context.clock()
    try:
        context.store.commit([_undone(job, step(job), context)], at=at)
    except LostRaceError:
        _stopped_meanwhile(job, context)


def _refused_for_its_request(
    job: Job, error: TrainingRefusedError, trial: Trial, context: PassContext
) -> None:
    """Free the slot as ``_release`` does, and record what the refusal says about the job's role."""
    try:
        role_trials.refused(job, error, trial, context, undone=lambda after: _undone(job, after, context))
    except LostRaceError:
        _stopped_meanwhile(job, context)


def _stopped_meanwhile(job: Job, context: PassContext) -> None:
    """Free the slot of a job that a user stopped between claim and create.

    Raises LostRaceError if something else has changed.
    """
    fresh, at = context.reader.job(job.name), context.clock()
    if fresh is None or fresh.state is not JobState.STOPPING or fresh.attempt != job.attempt:
        raise LostRaceError(f"{job.name} changed while its start was refused")
    context.store.commit([_undone(fresh, steps.never_created(fresh, now=at), context)], at=at)


def _undone(job: Job, after: Job, context: PassContext) -> Change:
    after = after_put_off(job, after, now=context.clock())
    return steps.claim_undone(job, after, pool_left(job, context.training))


def pool_left(job: Job, training: TrainingApi) -> Observation | None:
    """Describe the training job whose warm pool the attempt was claimed with; None without one."""
    reuses = job.live_attempt.claim.reuses
    return None if reuses is None else training.describe(reuses)


def learn(action: Start, context: PassContext) -> None:
    """Learn the account's limits from a first refusal: the total of some type is too much."""
    if action.job.refused is not None:
        return  # it tells of itself; others of its types were looked at when it was refused first
    at, state = context.clock(), context.pools.pool_state(context.pool)
    for capacity, count in action.shape.vector.items():
        limit = limit_after(
            state.account_limits.get(capacity),
            refused=_held(state, capacity) + count,
            last_end=state.last_end.get(capacity),
            at=at,
            seed=action.job.name,
        )
        context.store.learn_limit(context.pool, capacity, limit)


def forget(action: Start, context: PassContext) -> None:
    """Forget a learned limit that a start has exceeded, as the account allows more by now."""
    for change in applied(action).afterwards:
        if isinstance(change, LimitForgotten):
            context.store.learn_limit(context.pool, change.capacity, None)


def _held(state: PoolState, capacity: Capacity) -> int:
    return state.used.get(capacity, 0) + state.warm.get(capacity, 0)
