"""Carries out a plan: the only code that starts and stops training jobs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import assert_never

from trainmaster.core.errors import (
    AccountLimitError,
    AlarmQuotaError,
    AlarmRefusedError,
    LostRaceError,
    StillWarmError,
    StopDeniedError,
    TrainmasterError,
    UnreachableError,
)
from trainmaster.core.jobs.attempts import Attempt, Reason
from trainmaster.core.jobs.model import Job
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.lifecycle.settlement import WARM_AVAILABLE
from trainmaster.core.monitoring import reactions
from trainmaster.core.monitoring.alarms import Alarm, alarms_of, full_name, names_of, wanted_of
from trainmaster.core.outbox import budget_notice, to_tell
from trainmaster.core.planning.actions import (
    Action,
    EndReservation,
    KeepWarm,
    LimitReservation,
    Preempt,
    ReleaseWarm,
    SettleWarm,
    Start,
    Stop,
    Unpark,
    WarnOfBudget,
    WatchGpus,
)
from trainmaster.core.planning.snapshot import PreemptionReservation, RunningJob, WaitingJob, WarmPool
from trainmaster.core.policy.governance import Watch
from trainmaster.core.records import WriteCondition
from trainmaster.services.scheduler import start_protocol
from trainmaster.services.scheduler.context import PassContext

OVERDUE = timedelta(minutes=2)
"""A pool that is still there so long after its time was kept for longer than the row knows."""


def keep(warm_pool: WarmPool, until: datetime, context: PassContext) -> None:
    """Have it kept until then; one that is gone is settled instead."""
    if context.training.keep_alive(warm_pool.training_job_name, until - warm_pool.since):
        context.store.change_warm(
            context.pool, warm_pool, replace(warm_pool, expires_at=until), at=context.clock()
        )
    else:
        settle(warm_pool, context)


def release(warm_pool: WarmPool, context: PassContext) -> None:
    """Give it up; its instances count until SageMaker says that it is gone."""
    releasing = warm_pool if warm_pool.releasing else replace(warm_pool, releasing=True)
    if releasing != warm_pool:
        context.store.change_warm(context.pool, warm_pool, releasing, at=context.clock())
    context.training.keep_alive(warm_pool.training_job_name, timedelta())
    settle(releasing, context)


def settle(warm_pool: WarmPool, context: PassContext) -> None:
    """Stop counting a pool that SageMaker does not keep any more; it is billed for what SageMaker says.

    Raises:
        StillWarmError: It does; a later pass asks again.
    """
    seen = context.training.describe(warm_pool.training_job_name)
    if seen is not None and seen.warm_status == WARM_AVAILABLE:
        if warm_pool.releasing or context.clock() - warm_pool.expires_at > OVERDUE:
            context.training.keep_alive(warm_pool.training_job_name, timedelta())
        raise StillWarmError(f"SageMaker still keeps the warm pool of {warm_pool.training_job_name}")
    retained = seen.retained if seen is not None else None
    context.store.change_warm(context.pool, warm_pool, None, at=context.clock(), retained=retained)


def watch_gpus(job: Job, watch: Watch, context: PassContext) -> None:
    live = job.live_attempt
    wanted = wanted_of(live.vector, watch)
    alarms = alarms_of(live.training_job_name, wanted, watch, stack=context.stack)
    try:
        context.alarms.put(alarms)
        context.alarms.delete(_left_over(live, alarms, stack=context.stack))
    except (AlarmQuotaError, AlarmRefusedError) as error:
        code = ReasonCode.ALARM_QUOTA if isinstance(error, AlarmQuotaError) else ReasonCode.ALARM_REFUSED
        message = f"{error.detail}; its GPUs are not watched, and it is tried again every 15 minutes"
        after = reactions.refused(job, Reason(code=code, message=message), now=context.clock())
    else:
        after = reactions.monitored(job, wanted)
    context.store.commit([Change(before=job, after=after)], at=context.clock())


def _left_over(live: Attempt, wanted: Sequence[Alarm], *, stack: str) -> tuple[str, ...]:
    """Alarms of a policy that wanted more."""
    if live.watch.monitored is None:
        return ()
    kept = {alarm.name for alarm in wanted}
    relative = names_of(live.training_job_name, hosts=live.shape.instances)
    return tuple(name for one in relative if (name := full_name(stack, one)) not in kept)


MAX_UNREACHABLE = 3
"""Starts that find no connection before a pass gives up: each waits for seconds, and the function has 120."""


@dataclass(slots=True, kw_only=True)
class Outcome:
    done: list[Action] = field(default_factory=list)
    postponed: list[tuple[Action, TrainmasterError]] = field(default_factory=list)
    """Lost a race or were asked to come back; the next look decides anew."""
    failures: list[Exception] = field(default_factory=list)
    unreachable: int = 0
    """Starts that found no connection to SageMaker."""

    @property
    def gave_up(self) -> bool:
        return self.unreachable >= MAX_UNREACHABLE


def execute(actions: Iterable[Action], context: PassContext) -> Outcome:
    """Carry out each action in order; one bad job never stops the others.

    Crash safety: each action writes its intent first and calls SageMaker second, so a death between
    the two leaves a row that the next pass or the reconciler acts on.
    """
    outcome = Outcome()
    for action in actions:
        if outcome.gave_up and isinstance(action, Start):
            continue
        try:
            _execute_one(action, context)
        except TrainmasterError as error:
            _note(outcome, action, error)
        except Exception as error:  # noqa: BLE001  the bulkhead; the handler raises it after the pass
            outcome.failures.append(error)
        else:
            outcome.done.append(action)
    return outcome


def _note(outcome: Outcome, action: Action, error: TrainmasterError) -> None:
    """What can be tried again is no failure; that SageMaker is out of reach is one, once."""
    if error.retryable:
        outcome.postponed.append((action, error))
    else:
        outcome.failures.append(error)
    if isinstance(error, UnreachableError):
        outcome.unreachable += 1
        if outcome.gave_up:
            outcome.failures.append(error)


def explain(reasons: Mapping[str, Reason], candidates: Iterable[WaitingJob], context: PassContext) -> None:
    """Write the reasons whose code has changed; a job that moved on meanwhile keeps its own."""
    for candidate in candidates:
        reason = reasons.get(candidate.name)
        if reason is None or reason.code == candidate.waiting_code:
            continue
        try:
            job = _read(candidate, context)
            context.store.commit([Change(before=job, after=steps.explained(job, reason))], at=context.clock())
        except LostRaceError:
            continue


def _execute_one(action: Action, context: PassContext) -> None:
    match action:
        case Start():
            _start(action, context)
        case Preempt():
            _preempt(action, context)
        case Stop(job=running):
            _stop(_read(running, context), context)
        case Unpark(job=waiting):
            job = _read(waiting, context)
            context.store.commit([Change(before=job, after=steps.unparked(job))], at=context.clock())
        case WatchGpus(job=running, watch=watch):
            watch_gpus(_read(running, context), watch, context)
        case _:
            _keep_up(action, context)


def _keep_up(
    action: EndReservation | LimitReservation | KeepWarm | ReleaseWarm | SettleWarm | WarnOfBudget,
    context: PassContext,
) -> None:
    """What the pool itself keeps: holds and warm pools; and who is to be notified."""
    match action:
        case EndReservation(hold=hold):
            context.store.drop_hold(context.pool, hold)
        case LimitReservation(hold=hold, until=until):
            context.store.limit_hold(context.pool, hold, until)
        case KeepWarm(warm_pool=warm_pool, until=until):
            keep(warm_pool, until, context)
        case ReleaseWarm(warm_pool=warm_pool):
            release(warm_pool, context)
        case SettleWarm(warm_pool=warm_pool):
            settle(warm_pool, context)
        case WarnOfBudget():
            _warn(action, context)
        case _:
            assert_never(action)


def _warn(action: WarnOfBudget, context: PassContext) -> None:
    """Reported first, noted second: after a crash in between it is left again, as the same message."""
    notice = budget_notice(
        action.team, month=action.month, spent_cents=action.spent_cents, limit_cents=action.limit_cents
    )
    cause = f"{action.team}#{action.month}"
    context.store.leave(context.pool, [to_tell(notice, cause=cause, at=context.clock())])
    context.store.warned(action.team, action.month)


def _start(action: Start, context: PassContext) -> None:
    job = _read(action.job, context)
    body = context.reader.request(job.name)
    if start_protocol.forbidden(job, body, context):
        return
    claimed = start_protocol.claim(job, action, context)
    try:
        start_protocol.launch(claimed, body, context)
    except AccountLimitError:
        start_protocol.learn(action, context)
        raise
    start_protocol.forget(action, context)


def _preempt(action: Preempt, context: PassContext) -> None:
    """Intents and the hold in one transaction; the stops follow.

    Nobody is stopped for a job that the rules would not let start.
    """
    preemptor = _read(action.job, context)
    if start_protocol.forbidden(preemptor, context.reader.request(preemptor.name), context):
        return
    victims = [_read(victim, context) for victim in action.victims]
    hold = PreemptionReservation(
        preemptor=action.job.name, vector=action.shape.vector, victims=tuple(job.name for job in victims)
    )
    changes = [Change(before=victim, after=steps.preempted_for(victim, action.job)) for victim in victims]
    condition = WriteCondition(
        policy_version=context.policy_version,
        used=action.used,
        places_hold=hold,
        still_waiting=action.job,
    )
    for job in context.store.commit(changes, at=context.clock(), condition=condition):
        _stop(job, context)


def _stop(job: Job, context: PassContext) -> None:
    try:
        context.training.stop(job.live_attempt.training_job_name)
    except StopDeniedError as error:
        _say_once(job, error, context)
        raise
    context.store.commit([Change(before=job, after=steps.stop_told(job))], at=context.clock())


def _say_once(job: Job, error: StopDeniedError, context: PassContext) -> None:
    """Only an adopted job is none of the stack's own; each pass tries again, as the stack may be changed."""
    if job.spec.adopted and job.waiting is None:
        context.store.commit(
            [Change(before=job, after=steps.not_stopped(job, str(error)))], at=context.clock()
        )


def _read(seen: WaitingJob | RunningJob, context: PassContext) -> Job:
    """The whole job, provided that it is still what the plan was made for."""
    job = context.reader.job(seen.name)
    if job is None or job.ver != seen.ver:
        raise LostRaceError(f"{seen.name} changed after it was planned for")
    return job
