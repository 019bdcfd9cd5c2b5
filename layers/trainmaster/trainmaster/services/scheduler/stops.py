"""Stop running jobs: victims of preemptions, and jobs that were asked to stop."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from trainmaster.core.errors import RowSetAsideError, StopDeniedError, UnavailableError
from trainmaster.core.jobs.model import Job
from trainmaster.core.lifecycle import steps, width_changes
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.lifecycle.unserved_attempts import after_hold_ran_out
from trainmaster.core.lifecycle.victim_stops import victim_asked
from trainmaster.core.planning.actions import Grow, Preempt
from trainmaster.core.planning.apply import Changes, applied, in_batches
from trainmaster.core.planning.changes import HoldEnded, JobDrained, VictimAsked
from trainmaster.core.planning.snapshot import PreemptionReservation
from trainmaster.services.scheduler import start_protocol
from trainmaster.services.scheduler.broken_rows import read_job, request_of
from trainmaster.services.scheduler.conditions import condition_of
from trainmaster.services.scheduler.context import PassContext

MAX_VICTIMS = 24
"""Victims of one transaction of at most 100 items, four for each. Source: DynamoDB limits."""


def preempt(action: Preempt, context: PassContext) -> Callable[[], None] | None:
    """Write intents and hold in one transaction, and return the call that sends the stops.

    Further victims are asked in more transactions, each only while the hold is as it was left and the same
    instances are in use. After a race or a crash in between the planner decides who else is needed. No job is
    stopped for one that the rules would not let start.
    """
    preemptor = read_job(action.job, context)
    body = request_of(preemptor, context)
    if body is None or start_protocol.forbidden(preemptor, body, context):
        return None
    action = replace(action, job=replace(action.job, ver=preemptor.ver))
    stopping: list[Job] = []
    for batch in in_batches(action, MAX_VICTIMS):
        if stopping and context.deadline.is_over:
            break
        try:
            stopping += _ask_to_stop(batch, context)
        except UnavailableError:
            if not stopping:
                raise
            break
    return partial(_stop_each, stopping, context)


def _ask_to_stop(batch: Preempt, context: PassContext) -> tuple[Job, ...]:
    """Write that the victims of a batch are asked to stop, and the hold, if the preemptor is unchanged."""
    changes = applied(batch)
    condition = replace(condition_of(changes, context), still_waiting=batch.job)
    intents = [_stop_intent(change, context) for change in changes.written if isinstance(change, VictimAsked)]
    return context.store.commit(intents, at=context.clock(), condition=condition)


def _stop_intent(change: VictimAsked, context: PassContext) -> Change:
    victim = read_job(change.victim, context)
    return Change(before=victim, after=victim_asked(victim, change, now=context.clock()))


def grow(action: Grow, context: PassContext) -> Callable[[], None]:
    """Write that a job is asked to stop, and the room that is kept for it, and return the call that stops it.

    Crash safety: a death in between leaves a row whose stop the next pass sends.
    """
    changes = applied(action)
    job, at = read_job(action.job, context), context.clock()
    after = width_changes.grown(job, action.why, width=action.width, now=at)
    intent = Change(before=job, after=after)
    stopping = context.store.commit([intent], at=at, condition=condition_of(changes, context))
    return partial(_stop_each, stopping, context)


def end_reservation(change: HoldEnded, context: PassContext) -> None:
    """End a reservation; a preemptor that did not start in time has preempted in vain.

    Both are one transaction: the count is neither lost nor repeated. One that waits no more is not counted.
    """
    job = _late_preemptor(change.hold, context) if change.ran_out else None
    if job is None:
        context.store.drop_hold(context.pool, change.hold)
        return
    at = context.clock()
    after = after_hold_ran_out(job, change.hold.vector, now=at)
    condition = condition_of(Changes(written=(change,)), context)
    context.store.commit([Change(before=job, after=after)], at=at, condition=condition)


def _late_preemptor(hold: PreemptionReservation, context: PassContext) -> Job | None:
    """Return the job that the hold waited for in vain; None if it is gone, or its row is unreadable."""
    try:
        job = context.reader.job(hold.preemptor)
    except RowSetAsideError:
        return None
    if job is None or not job.is_waiting or job.spec.pool != context.pool:
        return None
    return None if job.changes_width else job  # it stopped no other job for the room that it kept


def _stop_each(jobs: Iterable[Job], context: PassContext) -> None:
    """Send the stops; the next look stops jobs that the time does not reach, as they are asked to stop."""
    for job in jobs:
        if context.deadline.is_over:
            return
        stop(job, context)


def drain(change: JobDrained, context: PassContext) -> None:
    """Stop a job for the calendar; a death in between leaves a row whose stop the next pass sends."""
    job = read_job(change.job, context)
    intent = Change(before=job, after=steps.drained(job, change.why))
    (stopping,) = context.store.commit([intent], at=context.clock())
    stop(stopping, context)


def stop(job: Job, context: PassContext) -> None:
    try:
        context.training.stop(job.live_attempt.training_job_name)
    except StopDeniedError as error:
        _say_once(job, error, context)
        raise
    context.store.commit([Change(before=job, after=steps.stop_told(job))], at=context.clock())


def _say_once(job: Job, error: StopDeniedError, context: PassContext) -> None:
    """Note once that an adopted job cannot be stopped; each pass tries again, as rights may be added."""
    if job.spec.adopted and job.waiting is None:
        context.store.commit(
            [Change(before=job, after=steps.not_stopped(job, str(error)))], at=context.clock()
        )
