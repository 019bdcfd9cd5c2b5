"""Decide who is at fault for a refused start: the job, which then fails, or we, and then no job is lost.

AWS answers a missing right or a bad request in the same way for one job and for all of them. So one refusal
proves nothing. A job is at fault once it was refused twice and AWS accepted another one with the same role in
between; if no other was tried, once it was refused many times or for long. Three jobs in a row that were
refused with one code show that the fault is ours: then starts with the role pause, and one at a time is
tried.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from trainmaster.core.arrays.tasks import array_entry_id
from trainmaster.core.errors import AccessRefusedError, TrainingRefusedError
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.jobs.start_troubles import RequestRefusals
from trainmaster.core.planning.refusal_records import (
    MOST_REFUSED_STARTS,
    MOST_ROLES,
    MOST_SHOWN,
    RefusedStart,
    RoleChange,
    RoleStarts,
    StartPause,
)

FIRST_WAIT = timedelta(minutes=1)
LONGEST_WAIT = timedelta(minutes=15)
"""Longest wait: a refused job is retried after 1, 2, 4 ... 15 minutes, and so is a role whose starts
pause."""
JOBS_UNTIL_PAUSE = 3
"""Number of different submissions in a row, refused with one code, that are no coincidence."""
TIMES_ALONE = 3
"""Refusals of a request after which a job is given up although no other job was tried."""
TIME_ALONE = timedelta(hours=1)
"""Time after which a job with a missing right is given up likewise; until then an admin may grant it."""


def wait_after(times: int) -> timedelta:
    """Return the wait after this many refusals in a row, 1 and up."""
    wait: timedelta = FIRST_WAIT * 2 ** min(times - 1, 10)
    return min(LONGEST_WAIT, wait)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """The role that starts are sent with, and the key of its record."""

    key: str
    role_arn: str
    launcher: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One start that was sent, as far as it tells about its role."""

    sender: Sender
    is_probe: bool = False
    """Whether it was sent to find out if a pause may end."""
    known: int = 0
    """Number of the role's refusals that were known when it was sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Conclusions from a refusal about the job, and the new record of its role."""

    refusals: RequestRefusals
    is_own_fault: bool
    role: RoleChange


def decide(
    job: Job,
    refusal: TrainingRefusedError,
    trial: Trial,
    records: Mapping[str, RoleStarts],
    *,
    at: datetime,
) -> Verdict:
    """Decide what one refusal says about its job and about its role.

    Args:
        job: The refused job, with its claim.
        refusal: AWS's answer.
        trial: The start that was refused.
        records: The pool's records of roles, by key.
        at: Instant of the refusal.
    """
    sender = trial.sender
    role = records.get(sender.key)
    refusals = _counted(job, refusal, role, at=at)
    is_own_fault = _is_own_fault(job.starts.by_request, refusals, refusal, role, at=at)
    numbered = replace(refusals, number=max(role.number if role else 0, refusals.number) + 1)
    after = _noted(role, sender, numbered, at=at)
    if is_own_fault:
        after = _numbered_again(after, _submission(job))
    else:
        after = _held_against(after, job, refusal, is_probe=trial.is_probe, at=at)
    change = RoleChange(key=sender.key, before=role, after=after, drops=_dropped(records, sender.key))
    return Verdict(refusals=numbered, is_own_fault=is_own_fault, role=change)


def _submission(job: Job) -> str:
    """Return the entry id of what was submitted: the tasks of an array are one request."""
    return array_entry_id(job.spec.entry_id) if job.spec.array else job.spec.entry_id


def _counted(
    job: Job, refusal: TrainingRefusedError, role: RoleStarts | None, *, at: datetime
) -> RequestRefusals:
    """Count a refusal.

    A role's record that was dropped meanwhile may have known others, so those count as tried.
    """
    before = job.starts.by_request
    if before is None:
        return RequestRefusals(count=1, code=refusal.code, number=0, alone_since=at)
    again = replace(before, count=before.count + 1, code=refusal.code, alone=before.alone + 1)
    # Another job of the role was refused or accepted in between: then this is not one job alone at its tries.
    others_tried = role is None or _others_refused_since(role, before, job) or _took_since(role, before)
    return replace(again, alone=1, alone_since=at) if others_tried else again


def _others_refused_since(role: RoleStarts, before: RequestRefusals, job: Job) -> bool:
    """Tell whether AWS refused another submission since the job's last refusal; one of its array is none."""
    submission = _submission(job)
    own = [start.number for start in role.refused if start.entry_id == submission]
    others = [start.number for start in role.refused if start.entry_id != submission]
    is_latest = role.number == max([before.number, *own])
    return not is_latest or max(others, default=0) > before.number


def _took_since(role: RoleStarts, before: RequestRefusals) -> bool:
    """Tell whether AWS took a start with the role that was sent after the job's last refusal."""
    return role.accepted >= before.number


def _is_own_fault(
    before: RequestRefusals | None,
    refusals: RequestRefusals,
    refusal: TrainingRefusedError,
    role: RoleStarts | None,
    *,
    at: datetime,
) -> bool:
    """Tell whether the job is at fault; it is not while all starts of its role are refused."""
    if before is None or role is None or role.pause is not None:
        return False
    if _took_since(role, before):
        return True
    if isinstance(refusal, AccessRefusedError):
        return at - refusals.alone_since >= TIME_ALONE
    return refusals.alone >= TIMES_ALONE


def _noted(role: RoleStarts | None, sender: Sender, refusals: RequestRefusals, *, at: datetime) -> RoleStarts:
    if role is not None:
        return replace(role, ver=role.ver + 1, number=refusals.number, at=at)
    return RoleStarts(
        role_arn=sender.role_arn[:MOST_SHOWN],
        launcher=sender.launcher,
        ver=1,
        number=refusals.number,
        at=at,
    )


def _numbered_again(role: RoleStarts, submission: str) -> RoleStarts:
    """Note the latest refusal of a submission that is known already, so that it counts as no other one."""
    refused = (
        replace(start, number=role.number) if start.entry_id == submission else start
        for start in role.refused
    )
    return replace(role, refused=tuple(refused))


def _held_against(
    role: RoleStarts, job: Job, refusal: TrainingRefusedError, *, is_probe: bool, at: datetime
) -> RoleStarts:
    """Add the job to those refused in a row, and begin or prolong the pause that follows from them."""
    entry_id = _submission(job)
    latest = RefusedStart(entry_id=entry_id, code=refusal.code, number=role.number)
    others = [refused_start for refused_start in role.refused if refused_start.entry_id != entry_id]
    refused = (*others, latest)[-MOST_REFUSED_STARTS:]
    alike = sum(refused_start.code == refusal.code for refused_start in refused)
    pause = role.pause
    # Only the probe of a pause prolongs it: other refusals are of starts that were under way when it began.
    if pause is not None and is_probe:
        probes = pause.probes + 1
        pause = replace(pause, probes=probes, next_probe_at=at + wait_after(probes + 1))
    elif pause is None and alike >= JOBS_UNTIL_PAUSE:
        pause = StartPause(
            since=at,
            number=role.number,
            code=refusal.code,
            message=refusal.detail[:MOST_SHOWN],
            team=job.spec.team,
            next_probe_at=at + wait_after(1),
        )
    return replace(role, refused=refused, pause=pause)


def _dropped(known: Mapping[str, RoleStarts], key: str) -> str | None:
    """Return the key of the record that a new one displaces: the oldest, if possible without a pause."""
    if key in known or len(known) < MOST_ROLES:
        return None
    return min(known, key=lambda role_key: (known[role_key].pause is not None, known[role_key].at, role_key))


def accepted(role: RoleStarts, *, known_when_sent: int) -> RoleStarts | None:
    """Record that AWS accepted a start; None if that adds nothing.

    Args:
        role: The record as it is.
        known_when_sent: The number of the role's refusals that were known when the start was sent: those
            that came later, while it was under way, may well be general.
    """
    if known_when_sent <= role.accepted:
        return None
    pause = role.pause
    return replace(
        role,
        ver=role.ver + 1,
        accepted=known_when_sent,
        refused=tuple(
            refused_start for refused_start in role.refused if refused_start.number > known_when_sent
        ),
        pause=pause if pause is not None and pause.number > known_when_sent else None,
    )


def probed(role: RoleStarts, *, until: datetime) -> RoleStarts:
    """Give the one try that a pause allows to a start.

    If it comes to nothing, the next may be at ``until``.
    """
    assert role.pause is not None, role
    return replace(role, ver=role.ver + 1, pause=replace(role.pause, next_probe_at=until))


def put_off(job: Job, refusals: RequestRefusals, text: str, *, now: datetime) -> Job:
    """Let the same attempt wait under the same name, not charged, and quote AWS."""
    times = "once" if refusals.count == 1 else f"{refusals.count} times in a row"
    return replace(
        job.moved_to(JobState.PENDING),
        live=None,
        not_before=now + wait_after(refusals.count),
        waiting=Reason(code=ReasonCode.REFUSED, message=f"AWS refused to start it {times}: {text}"),
        starts=replace(job.starts, by_request=refusals),
    )


def with_role(job: Job, role: str) -> Job:
    """Record the role that it starts with (``role_digest``), if an earlier release stored the job."""
    return replace(job, spec=replace(job.spec, role=role))
