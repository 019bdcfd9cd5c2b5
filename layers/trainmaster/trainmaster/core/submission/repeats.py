"""A request that meets a job of its name: the same submission sent again, or another one."""

from datetime import UTC, datetime, timedelta
from hashlib import sha256

from trainmaster.core.errors import (
    FieldError,
    JobConflictError,
    JobNameTakenError,
    KeyReusedError,
    invalid,
    quoted,
)
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.submission.admission import Submission, is_same_request

KEY_HEADER = "Idempotency-Key"
MOST_KEY_CHARACTERS = 128
REPEATED_WITHIN = timedelta(seconds=60)
"""How long after its submission an ended job still answers a request without a key: so long a client repeats
a request whose answer was lost. Later, the same request is another submission, such as the next night's."""

RULE_NAME_TAKEN = ReasonCode.NAME_TAKEN.value
RULE_KEY_REUSED = "key-reused"

_ENDED = {JobState.COMPLETED: "completed", JobState.FAILED: "failed", JobState.STOPPED: "was stopped"}


def hash_of_key(header: str | None) -> str | None:
    """Return the SHA-256 (hex) of the key that a caller sent; None if none was sent.

    Raises InvalidRequestError unless it is 1 to 128 printable ASCII characters.
    """
    if header is None:
        return None
    if not (1 <= len(header) <= MOST_KEY_CHARACTERS and header.isascii() and header.isprintable()):
        error = FieldError(
            field=KEY_HEADER,
            message=f"{quoted(header)} is not 1 to {MOST_KEY_CHARACTERS} printable ASCII characters",
            hint="send a UUID that is new for each submission and the same when it is repeated",
        )
        raise invalid([error])
    return sha256(header.encode()).hexdigest()


def conflict_with(job: Job, submission: Submission, *, now: datetime, is_seen: bool) -> FieldError | None:
    """Tell why the job that has the name does not answer the request; None where it does.

    A key counts within the jobs of its name and team alone, so it is kept in the row of the job.

    Args:
        job: The job that has the name, or has an attempt with it.
        submission: The request that was sent.
        now: Time of the request.
        is_seen: Whether the caller may see jobs of that team.
    """
    is_repeated_key = submission.key_hash is not None and submission.key_hash == job.spec.key_hash
    if is_same_request(job, submission):
        if not job.is_final or is_repeated_key:
            return None
        # Without a key only the time tells a repetition of a lost answer from the next submission.
        if submission.key_hash is None and now - job.spec.submitted_at <= REPEATED_WITHIN:
            return None
    elif is_repeated_key and job.spec.team == submission.team:
        return _key_reused(job)
    return _name_taken(job, submission.ask.name, now=now, is_seen=is_seen)


def conflict_error(error: FieldError) -> JobConflictError:
    """Make the answer to a caller who wanted the name."""
    kind = KeyReusedError if error.rule == RULE_KEY_REUSED else JobNameTakenError
    return kind(f"{error.message}: {error.hint}", errors=[error])


def _key_reused(job: Job) -> FieldError:
    return FieldError(
        field=KEY_HEADER,
        message=f"this key was sent before with another request under the name {job.name}",
        hint="send a new key with a new request",
        rule=RULE_KEY_REUSED,
    )


def _name_taken(job: Job, name: str, *, now: datetime, is_seen: bool) -> FieldError:
    subject = "a job of this name" if job.name == name else f"{job.name}, which has an attempt of this name,"
    message = f"{subject} {_standing(job, now=now)}" if is_seen else "a job of another team has this name"
    return FieldError(
        field="TrainingJobName", message=message, hint="choose another name", rule=RULE_NAME_TAKEN
    )


def _standing(job: Job, *, now: datetime) -> str:
    """Write state and end: "completed on 26 Nov 02:10 UTC"."""
    if not job.is_final:
        return f"is {job.state}"
    ended = _ENDED[job.state]
    return ended if job.ended_at is None else f"{ended} on {_day_and_time(job.ended_at, now=now)}"


def _day_and_time(at: datetime, *, now: datetime) -> str:
    at, now = at.astimezone(UTC), now.astimezone(UTC)
    year = "" if at.year == now.year else f" {at.year}"
    return f"{at.day} {at:%b}{year} {at:%H:%M} UTC"
