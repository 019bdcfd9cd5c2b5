"""Learn about a role from each start: a refusal counts against it, an accepted start ends a pause.

Crash safety: a refusal is written with the job's way back into the queue, so both happen or neither. That AWS
accepted a start is written after its record; a death in between leaves a pause that the next probe ends.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from trainmaster.core.errors import LostRaceError, TrainingRefusedError
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.model import Job
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle import refused_starts, steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.lifecycle.refused_starts import Sender, Trial
from trainmaster.core.planning.actions import Start
from trainmaster.core.planning.refusal_records import RoleChange, role_digest, starts_key
from trainmaster.services.scheduler.context import PassContext

TRIES = 12
"""Tries of writing a role's record: all concurrent starts may be refused at once, and in two passes."""


def sender_of(job: Job, body: Mapping[str, Any], context: PassContext) -> Sender:
    """Name who sends the job's starts, and with which role."""
    role, launcher = body["RoleArn"], context.launcher_arn(job.spec.team)
    return Sender(key=starts_key(role_digest(role), launcher), role_arn=role, launcher=launcher)


def is_held_back(start: Start, context: PassContext) -> bool:
    """Tell whether starts with its role pause by now, so that it must not be claimed as planned."""
    if start.probes_role is not None or start.job.role is None or not context.roles.records:
        return False
    return context.roles.is_paused(starts_key(start.job.role, context.launcher_arn(start.job.team)))


def trial(action: Start, job: Job, body: Mapping[str, Any], context: PassContext) -> Trial:
    """Note what is known just before a start is sent."""
    sender = sender_of(job, body, context)
    record = context.roles.records.get(sender.key)
    return Trial(
        sender=sender,
        is_probe=action.probes_role == sender.key,
        known=record.number if record else 0,
    )


def notes_role(job: Job, body: Mapping[str, Any], context: PassContext) -> bool:
    """Write down the role of a job that an earlier release stored, if starts with it pause; True then.

    The plan could not know that the job belongs to the pause. Raises LostRaceError.
    """
    if job.spec.role is not None or not context.roles.is_paused(sender_of(job, body, context).key):
        return False
    after = refused_starts.with_role(job, role_digest(body["RoleArn"]))
    context.store.commit([Change(before=job, after=after)], at=context.clock())
    return True


def probe_of(action: Start, context: PassContext) -> RoleChange | None:
    """Return the change by which a claim takes the one probe of a pause, so that no other pass takes it."""
    record = context.roles.records.get(action.probes_role or "")
    if action.probes_role is None or record is None:
        return None
    after = refused_starts.probed(record, until=context.clock() + steps.LEASE)
    return RoleChange(key=action.probes_role, before=record, after=after)


def refused(
    job: Job,
    error: TrainingRefusedError,
    trial: Trial,
    context: PassContext,
    *,
    undone: Callable[[Job], Change],
) -> None:
    """Record a refused start: its job waits or has failed, and its role's record changes, at once.

    Args:
        job: The job, with its claim.
        error: The refusal.
        trial: What was known when the start was sent.
        context: The pass.
        undone: Makes the change that frees the slot, from the job after it.

    The last try leaves the role's record as it is: if that cannot be read, its job waits anyway.

    Raises:
        LostRaceError: The job has changed.
    """
    for left in reversed(range(TRIES)):
        at = context.clock()
        verdict = refused_starts.decide(job, error, trial, context.roles.records, at=at)
        if verdict.is_own_fault:
            reason = Reason(code=ReasonCode.FAILED_TO_START, message=error.detail)
            after = steps.failed(job, reason=reason, now=at)
        else:
            after = refused_starts.put_off(job, verdict.refusals, error.detail, now=at)
        change = undone(after)
        try:
            context.store.commit([replace(change, role=verdict.role) if left else change], at=at)
        except LostRaceError:
            # By version: the table keeps milliseconds, so the same job may be read with other instants.
            fresh = context.reader.job(job.name)
            if not left or fresh is None or fresh.ver != job.ver:
                raise
            context.roles.read_again(context.pools.role_starts(context.pool))
        else:
            context.roles.note(verdict.role)
            return


def taken(trial: Trial, context: PassContext) -> None:
    """Note that AWS accepted a start with the role, if it refused one before."""
    key = trial.sender.key
    for _ in range(TRIES if trial.known else 0):
        record = context.roles.records.get(key)
        after = refused_starts.accepted(record, known_when_sent=trial.known) if record else None
        if after is None:
            return
        change = RoleChange(key=key, before=record, after=after)
        if context.store.note_role(context.pool, change):
            context.roles.note(change)
            return
        context.roles.read_again(context.pools.role_starts(context.pool))
