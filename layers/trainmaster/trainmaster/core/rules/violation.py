"""Violations of rules, and the records that are kept of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from trainmaster.core.errors import FieldError
from trainmaster.core.policy.job_rules import Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One violation of one rule by a request."""

    rule: str
    """Key of the policy's ``rules``; a team's own is ``teams.NAME.rules.KEY``."""
    field: str
    """Path into the CreateTrainingJob request."""
    message: str
    """Text on what is wrong; values that may be secret are never repeated."""
    hint: str
    """Text on what is allowed."""
    mode: Mode = Mode.ENFORCE

    def as_field_error(self) -> FieldError:
        return FieldError(field=self.field, message=self.message, hint=self.hint, rule=self.rule)


class Outcome(StrEnum):
    """Outcomes for a job with violations, or for one that bypassed the queue."""

    AUDITED = "audited"
    STOPPED = "stopped"
    ADOPTED = "adopted"
    NOT_STOPPED = "not-stopped"
    """It was to be stopped, and AWS denies it: the stack has no right to."""


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
    """Whether it bypassed the queue."""
    outcome: Outcome
    violations: tuple[Violation, ...] = ()
    revision: int = 0
    """Revision of the policy that it was judged by; 0 where another one would find the same."""


def says_the_same(before: ViolationRecord, record: ViolationRecord) -> bool:
    """Tell whether two revisions of the policy judge a training job alike; a denied stop changes nothing."""
    was = Outcome.STOPPED if before.outcome is Outcome.NOT_STOPPED else before.outcome
    return was is record.outcome


def enforced_first(violations: Sequence[Violation]) -> tuple[Violation, ...]:
    return tuple(sorted(violations, key=lambda violation: violation.mode is not Mode.ENFORCE))


def causes(record: ViolationRecord) -> tuple[Violation, ...]:
    """Return the violations that caused the outcome.

    There are none if bypassing the queue is the only reason to stop it.
    """
    to_be_stopped = record.outcome in {Outcome.STOPPED, Outcome.NOT_STOPPED}
    if to_be_stopped and not any(violation.mode is Mode.ENFORCE for violation in record.violations):
        return ()
    return enforced_first(record.violations)


_MOST_LISTED = 5


def listed(allowed: Sequence[object]) -> str:
    """Render the first few, and the number of the others."""
    shown = ", ".join(str(entry) for entry in allowed[:_MOST_LISTED])
    left_out = len(allowed) - _MOST_LISTED
    return f"{shown} and {left_out} more" if left_out > 0 else shown
