"""Every error this package raises on purpose.

* TrainmasterError                500
  + InvalidRequestError           400  the caller must change the request
  + ForbiddenError                403  no team, not this team, not an admin
  + NotFoundError                 404  unknown, or another team's
  + JobConflictError              409  the job's state forbids it
    + JobNameTakenError           409  a job has the name: another request's, or one that has ended
    + KeyReusedError              409  the idempotency key came before with another request
  + PolicyInUseError              409  the policy change would strand live or waiting jobs
  + PayloadTooLargeError          413  over the limit of the request body
  + PolicyViolationError          422  every rule and limit of the policy that is violated
  + TooManyRequestsError          429  over a per-team limit
    + ShareExceededError          429  faster than the team's share of the API's throttle
  + MissingIdentityError          500  the gateway gave no caller: misconfigured, nothing is written
  + RowSetAsideError              500  a row of the table cannot be understood: it is left as it is
  + WriteRefusedError             500  the table will never take a write as it is: nothing is stored
  + RepairNeededError             503  an admin has to repair a row first: trying again does not help
  + UnavailableError              503  AWS refused for now (retryable)
    + LostRaceError               503  another write changed the item first
    + AccountLimitError           503  a quota of the account forbids it for now
      + OtherLimitError           503  the quota counts no instances of training jobs
      + InstanceLimitError        503  the account allows no more instances of the type for now
    + ThrottledError              503  the account calls an operation too often: nothing happened
    + UnreachableError            503  no connection to AWS: nothing was sent
    + AlarmQuotaError             503  the account has as many alarms as it may
    + AlarmRefusedError           503  CloudWatch will not make an alarm as it is
    + StillWarmError              503  a warm pool that was given up is not gone yet
    + StopDeniedError             503  IAM does not let us stop a training job
    + ServerFaultError            503  AWS failed while it worked on the call
    + OutcomeUnknownError         503  no answer: the call may or may not have happened
  + TeamLimitError                a team is over a limit of its pool: nothing was stored
  + TrainingRefusedError          AWS refused the request of a start: the job's fault, or everybody's
    + AccessRefusedError          the start lacks a right
      + LauncherRefusedError      the role that a team has its jobs started by cannot be assumed
  + NameTakenError                a training job with the attempt's name exists
  + UnclassifiedTrainingError     SageMaker answered with an error we do not know
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldError:
    """One fault in one field: where it is, what is wrong, and what to do about it."""

    field: str
    """Path into the document, e.g. ``ResourceConfig.InstanceCount`` or ``pools[0].capacity``."""
    message: str
    hint: str
    rule: str | None = None
    """Rule or limit of the policy that is broken; None when the request itself is malformed."""


class TrainmasterError(Exception):
    """Root of the tree."""

    status: HTTPStatus = HTTPStatus.INTERNAL_SERVER_ERROR
    title: str = "Internal error"
    retryable: bool = False

    def __init__(self, detail: str, *, errors: Sequence[FieldError] = ()) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = tuple(errors)


class InvalidRequestError(TrainmasterError):
    status = HTTPStatus.BAD_REQUEST
    title = "Invalid request"


class ForbiddenError(TrainmasterError):
    status = HTTPStatus.FORBIDDEN
    title = "Forbidden"


class NotFoundError(TrainmasterError):
    status = HTTPStatus.NOT_FOUND
    title = "Not found"


class JobConflictError(TrainmasterError):
    status = HTTPStatus.CONFLICT
    title = "Conflict"


class JobNameTakenError(JobConflictError):
    title = "Name taken"


class KeyReusedError(JobConflictError):
    title = "Key reused"


class PolicyInUseError(TrainmasterError):
    status = HTTPStatus.CONFLICT
    title = "Policy in use"


class PayloadTooLargeError(TrainmasterError):
    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    title = "Request too large"


class PolicyViolationError(TrainmasterError):
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    title = "Not allowed by the policy"


class TooManyRequestsError(TrainmasterError):
    """A per-team limit; ``retry_after`` in whole seconds goes into the answer's header."""

    status = HTTPStatus.TOO_MANY_REQUESTS
    title = "Too many requests"
    retryable = True

    def __init__(self, detail: str, *, retry_after: int, errors: Sequence[FieldError] = ()) -> None:
        super().__init__(detail, errors=errors)
        self.retry_after = retry_after


class ShareExceededError(TooManyRequestsError):
    """A team calls more often than its share of the API's throttle allows; nothing was read for it."""


class TeamLimit(StrEnum):
    """The ``limits`` of a pool, as the policy names them; each counts for every team by itself."""

    MAX_WAITING = "max_waiting"
    MAX_SUBMISSIONS_PER_MINUTE = "max_submissions_per_minute"
    MAX_READS_PER_MINUTE = "max_reads_per_minute"


class TeamLimitError(TrainmasterError):
    """A limit of the team is reached, so the store took no more of its jobs."""

    def __init__(self, limit: TeamLimit) -> None:
        super().__init__(f"the team has reached {limit}")
        self.limit = limit


class MissingIdentityError(TrainmasterError):
    title = "No caller identity"


HOW_TO_REPAIR = (
    "trying again does not help: an admin sees why in `trainmaster doctor`, and repairs it with "
    "`trainmaster policy pause`, `trainmaster repair --apply`, `trainmaster policy resume`"
)


class RowSetAsideError(TrainmasterError):
    """A requested row cannot be understood; it is left as it is and nothing is done with it."""

    title = "Row not understood"

    def __init__(self, key: str, *, subject: str | None = None) -> None:
        super().__init__(
            f"the row {key} cannot be understood by this version and is left as it is; {HOW_TO_REPAIR}",
        )
        self.key = key
        self.subject = subject
        """Name of the job that cannot be reached because of the row; None if it is no single one."""


class WriteRefusedError(TrainmasterError):
    """The table will never accept the write as it is: a row at its size limit, a malformed value."""

    title = "Write refused"


class RepairNeededError(TrainmasterError):
    """A row is broken until an admin repairs it: no Retry-After, or a client would wait for ever."""

    status = HTTPStatus.SERVICE_UNAVAILABLE
    title = "Repair needed"


class UnavailableError(TrainmasterError):
    status = HTTPStatus.SERVICE_UNAVAILABLE
    title = "Try again"
    retryable = True


class LostRaceError(UnavailableError):
    """A conditional write lost: the item changed after it was read."""


class TaskNameError(LostRaceError):
    """A task of an array has the name, though it may be no job yet; answered as JobNameTakenError."""


class AccountLimitError(UnavailableError):
    """ResourceLimitExceeded: a quota of the account forbids the call, whatever the policy allows."""

    def __init__(self, message: str, *, instances_left: int | None = None) -> None:
        super().__init__(message)
        self.instances_left = instances_left
        """Instances that the quota would still have granted; None: it is not known."""


class OtherLimitError(AccountLimitError):
    """The quota counts no instances of training jobs, but seconds, say: it is the same at every width."""


class InstanceLimitError(AccountLimitError):
    """The quota of the instances themselves is reached: no request for as many of them is accepted."""


class ThrottledError(UnavailableError):
    """The account calls too often, or the turn of a call does not come in time: the call had no effect."""


class UnreachableError(UnavailableError):
    """There is no connection to the service: the call was never sent."""


class AlarmQuotaError(UnavailableError):
    """CloudWatch accepts no more alarms from the account."""


class AlarmRefusedError(UnavailableError):
    """CloudWatch refused an alarm though it was not busy: a missing right, or a bad member of the request."""


class StillWarmError(UnavailableError):
    """SageMaker still keeps a warm pool that is to be released."""


class StopDeniedError(UnavailableError):
    """AWS denies the right to stop a training job; only a change of the stack can grant it."""


class ServerFaultError(UnavailableError):
    """AWS answered with a 5xx; most likely the call had no effect, but that must be checked."""


class OutcomeUnknownError(UnavailableError):
    """AWS did not answer: the call may or may not have taken effect."""


class TrainingRefusedError(TrainmasterError):
    """AWS refused this request; one answer does not tell whether it would refuse any other, too."""

    def __init__(self, detail: str, *, code: str = "ValidationException") -> None:
        super().__init__(detail)
        self.code = code
        """AWS's error code; two spellings of one error are mapped to one."""


class AccessRefusedError(TrainingRefusedError):
    """The caller, or the role that is passed, lacks a right."""

    def __init__(self, detail: str, *, code: str = "AccessDeniedException") -> None:
        super().__init__(detail, code=code)


class LauncherRefusedError(AccessRefusedError):
    """STS gives no session of a team's launcher role: nothing was sent; an admin must fix the role."""

    def __init__(self, detail: str, *, code: str = "AssumeRole") -> None:
        super().__init__(detail, code=code)


class NameTakenError(TrainmasterError):
    """A training job with this name exists already, managed or not."""


class UnclassifiedTrainingError(TrainmasterError):
    """SageMaker answered with an unknown error code; after a few of them the job is given up."""


class BadOptionError(ValueError):
    """A value that people write is invalid; ``hint`` says which values are valid."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


MOST_QUOTED = 64
"""Most characters of a text that an error quotes."""


def quoted(text: str) -> str:
    """Return the text in quotes, on one line, in ASCII, cut: fit for an answer and for a log."""
    return json.dumps(text if len(text) <= MOST_QUOTED else f"{text[:MOST_QUOTED]}...")


def invalid(errors: Iterable[FieldError]) -> InvalidRequestError:
    """Return the error that lists them all; its detail gives the first, for clients that show only that."""
    listed = tuple(errors)
    rest = f" (and {len(listed) - 1} more)" if len(listed) > 1 else ""
    return InvalidRequestError(f"{listed[0].field}: {listed[0].message}{rest}", errors=listed)
