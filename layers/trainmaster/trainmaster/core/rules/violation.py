"""What a rule found, and what is kept of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from trainmaster.core.errors import FieldError
from trainmaster.core.policy.job_rules import Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One thing in a request that one rule is against."""

    rule: str
    """Key of the policy's ``rules``; a team's own come as ``teams.NAME.rules.KEY``."""
    field: str
    """Path into the CreateTrainingJob request."""
    message: str
    """What is wrong; values that may be secret are never repeated."""
    hint: str
    """What is allowed."""
    mode: Mode = Mode.ENFORCE

    def as_field_error(self) -> FieldError:
        return FieldError(field=self.field, message=self.message, hint=self.hint, rule=self.rule)


class Outcome(StrEnum):
    """What became of a job with violations, or of one that bypassed the queue."""

    AUDITED = "audited"
    STOPPED = "stopped"
    ADOPTED = "adopted"
    NOT_STOPPED = "not-stopped"
    """It was to be stopped, and AWS does not let us: the stack has no right to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViolationRecord:
    """One line of ``GET /violations``: written once for each training job."""

    at: datetime
    """When the job was submitted or, if it bypassed the queue, created."""
    training_job_name: str
    training_job_arn: str | None = None
    team: str
    role_arn: str
    unmanaged: bool
    """It bypassed the queue."""
    outcome: Outcome
    violations: tuple[Violation, ...] = ()
    revision: int = 0
    """Of the policy that it was judged by; 0 where another one would find the same."""


def says_the_same(before: ViolationRecord, record: ViolationRecord) -> bool:
    """Of one training job, by two revisions of the policy; not being let stop it is no new judgement."""
    was = Outcome.STOPPED if before.outcome is Outcome.NOT_STOPPED else before.outcome
    return was is record.outcome


def enforced_first(violations: Sequence[Violation]) -> tuple[Violation, ...]:
    return tuple(sorted(violations, key=lambda one: one.mode is not Mode.ENFORCE))


def causes(record: ViolationRecord) -> tuple[Violation, ...]:
    """What its outcome is owed to; nothing where it was to be stopped for bypassing the queue alone."""
    to_be_stopped = record.outcome in {Outcome.STOPPED, Outcome.NOT_STOPPED}
    if to_be_stopped and not any(one.mode is Mode.ENFORCE for one in record.violations):
        return ()
    return enforced_first(record.violations)


_MOST_LISTED = 5


def listed(allowed: Sequence[object]) -> str:
    """The first few, and how many more there are."""
    shown = ", ".join(str(one) for one in allowed[:_MOST_LISTED])
    more = len(allowed) - _MOST_LISTED
    return f"{shown} and {more} more" if more > 0 else shown
