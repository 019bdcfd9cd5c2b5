"""Every error this client raises on purpose. Each message says what, where, and what to do.

* TrainmasterClientError
  + ApiNotConfiguredError       no API is named in any of the three places
  + InvalidApiUrlError          what is named is not a URL to send signed requests to
  + CredentialsError            no AWS credentials or region to sign with
    - ExpiredCredentialsError   they have expired, and the session cannot renew them
      . GatewayCredentialsError those of the local gateway, and its chain has no others
  + InvalidArgumentError        refused here, before anything was sent
  + UnsupportedTrainerError     a ModelTrainer that cannot be queued, or cannot use the launcher
  + UnsupportedBotocoreError    older than what the hooks need
  + InvalidOptionsError         what was said about a job is not an option, or has no such value
  + UnsupportedTuningError      a tuning job that cannot run through the queue
  + MalformedStudyError         a tuning job's study in S3 that this client does not know
  + ApiUnreachableError         no answer at all: DNS, connection, time-out
  + UnexpectedAnswerError       an answer, but not one of trainmaster's API
  + MalformedHistoryError       a file of past jobs, or a trace, that cannot be replayed
  + TrainingJobsUnreadableError SageMaker does not let its training jobs be read
  + PlansUnreadableError        SageMaker does not say which training plans it sells
  + LogsUnreadableError         CloudWatch Logs refused
    - LogsUnansweredError       it gave no answer, or failed by itself: later it may
      . LogsExpiredError        the credentials have expired: after a new login it may
  + MalformedViewError          a job described as this client does not know
  + RefusedError                the API answered with a problem
    - InvalidRequestError       400, 413
    - ForbiddenError            403
      . GatewayRefusedError     403 before the API saw the request: keys, signature, clock, rights
    - NotFoundError             404
    - ConflictError             409
    - PolicyViolationError      422
    - TooManyRequestsError      429
    - RepairNeededError         5xx: a row of the table is broken, and stays so until an admin repairs it
    - ApiFailedError            5xx
"""

from trainmaster_client.errors.problems import FieldProblem as FieldProblem
from trainmaster_client.errors.problems import Problem as Problem
from trainmaster_client.errors.remedies import ADVICE
from trainmaster_client.errors.troubles import Trouble


class TrainmasterClientError(Exception):
    """Root of the tree."""

    trouble: Trouble | None = None
    """Row of the guide to troubles; None if the message alone says what to do."""
    request_id: str = ""
    """Request id of the API's answer behind this error; empty if there was none."""
    may_be_renewed: bool = False
    """Credentials have expired, and new ones reach this process without a restart."""

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle with all fields: process pools would call the class with its message alone."""
        return _restored, (type(self), self.args), self.__dict__


def _restored(kind: type[TrainmasterClientError], args: tuple[object, ...]) -> TrainmasterClientError:
    return kind.__new__(kind, *args)


class ApiNotConfiguredError(TrainmasterClientError):
    trouble = Trouble.NO_API_URL

    def __init__(self, *, variable: str, parameter: str, why: str) -> None:
        super().__init__(
            "No trainmaster API is configured. Looked at: the argument api_url= (not given), "
            f"the environment variable {variable} (not set), the SSM parameter {parameter} ({why}). "
            "Give one of them; it is the stack's output ApiUrl."
        )


class InvalidApiUrlError(TrainmasterClientError):
    def __init__(self, api_url: str, *, trouble: Trouble = Trouble.BAD_API_URL) -> None:
        super().__init__(f"{api_url!r} is not the URL of a trainmaster API. {ADVICE[trouble]}")
        self.trouble = trouble


class CredentialsError(TrainmasterClientError):
    def __init__(self, why: str, *, trouble: Trouble = Trouble.CREDENTIALS_UNREADABLE) -> None:
        super().__init__(f"Cannot sign the request: {why} {ADVICE[trouble].remedy}")
        self.trouble = trouble


class ExpiredCredentialsError(CredentialsError):
    remedy = f"{ADVICE[Trouble.EXPIRED_CREDENTIALS]} Jobs of the queue do not depend on them."

    def __init__(self, why: str) -> None:
        super().__init__(why, trouble=Trouble.EXPIRED_CREDENTIALS)
        self.args = (f"{why} {self.remedy}",)


class GatewayCredentialsError(ExpiredCredentialsError):
    remedy = (
        "The gateway's AWS credentials have expired. To log in again: aws sso login, or as you got these; "
        "the next call uses them. Those of its own environment variables need a start with new ones."
    )


class InvalidArgumentError(TrainmasterClientError):
    def __init__(self, what: str, *, hint: str) -> None:
        super().__init__(f"{what} {hint}")


class UnsupportedTrainerError(TrainmasterClientError):
    def __init__(self, why: str) -> None:
        super().__init__(f"This ModelTrainer cannot be used like this: {why}.")


class UnsupportedBotocoreError(TrainmasterClientError):
    def __init__(self, found: str, *, floor: str) -> None:
        super().__init__(
            f"The hooks need boto3 and botocore {floor} or newer, and this is botocore {found}. "
            f'Update it: pip install "boto3>={floor}"'
        )


class ApiUnreachableError(TrainmasterClientError):
    def __init__(self, api_url: str, *, why: str, trouble: Trouble = Trouble.NO_ANSWER) -> None:
        super().__init__(f"No answer from trainmaster's API at {api_url}: {why} {ADVICE[trouble].remedy}")
        self.api_url = api_url
        self.trouble = trouble


class UnexpectedAnswerError(TrainmasterClientError):
    def __init__(self, api_url: str, *, what: str, trouble: Trouble = Trouble.NOT_THE_API) -> None:
        super().__init__(f"{api_url} answered, but not like trainmaster's API: {what}. {ADVICE[trouble]}")
        self.trouble = trouble


class LogsUnreadableError(TrainmasterClientError):
    remedy = (
        "You need logs:DescribeLogStreams and logs:GetLogEvents on the log group /aws/sagemaker/TrainingJobs."
    )

    def __init__(self, why: str) -> None:
        super().__init__(f"Cannot read the logs of training jobs: {why} {self.remedy}")


class LogsUnansweredError(LogsUnreadableError):
    remedy = "The job does not depend on it; the same lines can be read later."


class LogsExpiredError(LogsUnansweredError):
    trouble = Trouble.EXPIRED_CREDENTIALS
    may_be_renewed = True
    remedy = f"{ADVICE[Trouble.EXPIRED_CREDENTIALS]} {LogsUnansweredError.remedy}"


class MalformedViewError(TrainmasterClientError):
    """The API and this client are of different versions."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"trainmaster's API described a job in a way this client does not know ({what}). Is the client "
            "as new as the deployed stack?"
        )


class InvalidOptionsError(TrainmasterClientError):
    def __init__(self, problems: tuple[FieldProblem, ...]) -> None:
        lines = [f"  {problem}" for problem in problems]
        super().__init__("\n".join(["These options are wrong; nothing was sent.", *lines]))
        self.problems = problems


class UnsupportedTuningError(TrainmasterClientError):
    def __init__(self, problems: tuple[FieldProblem, ...]) -> None:
        lines = [f"  {problem}" for problem in problems]
        super().__init__("\n".join(["This tuning job cannot be queued; nothing was started.", *lines]))
        self.problems = problems


class MalformedStudyError(TrainmasterClientError):
    def __init__(self, where: str, *, why: str) -> None:
        super().__init__(
            f"{where} is not a study that this client knows ({why}). Was it written by a newer client? "
            "Update trainmaster, or restore an earlier version of the object."
        )


class MalformedHistoryError(TrainmasterClientError):
    def __init__(self, where: str, problems: tuple[FieldProblem, ...], *, count: int, hint: str = "") -> None:
        """Build the message from the first ``problems`` of ``count``; ``hint`` is about all of them."""
        lines = [f"  {problem}" for problem in problems]
        rest = [f"  and {count - len(problems)} more"] if count > len(problems) else []
        last = [hint] if hint else []
        super().__init__("\n".join([f"{where} cannot be replayed:", *lines, *rest, *last]))
        self.problems = problems


class TrainingJobsUnreadableError(TrainmasterClientError):
    actions = "sagemaker:ListTrainingJobs, sagemaker:DescribeTrainingJob and sagemaker:ListTags"

    def __init__(self, operation: str, *, why: str, is_denied: bool = False) -> None:
        remedy = (
            f"You need sagemaker:{operation}; all that is called: {self.actions}, on all resources."
            if is_denied
            else "What was read is kept: the same command continues from there."
        )
        super().__init__(f"SageMaker refused {operation}: {why} {remedy}")
        self.operation = operation
        self.is_denied = is_denied


class RefusedError(TrainmasterClientError):
    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


class InvalidRequestError(RefusedError):
    pass


class ForbiddenError(RefusedError):
    pass


class GatewayRefusedError(ForbiddenError):
    def __init__(self, problem: Problem, trouble: Trouble, *, detail: str = "") -> None:
        """Build the message; ``detail`` is a sentence on what was measured."""
        super().__init__(problem)
        parts = [f"{problem}", detail, str(ADVICE[trouble])]
        self.args = ("\n  ".join(part for part in parts if part),)
        self.trouble = trouble


class NotFoundError(RefusedError):
    pass


class ConflictError(RefusedError):
    pass


class PolicyViolationError(RefusedError):
    pass


class TooManyRequestsError(RefusedError):
    pass


class RepairNeededError(RefusedError):
    """A row that the call needs is broken: only an admin can help, so no client tries again by itself."""


class ApiFailedError(RefusedError):
    """The API's own failure; the request may be right."""


_BY_STATUS: dict[int, type[RefusedError]] = {
    400: InvalidRequestError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    413: InvalidRequestError,
    422: PolicyViolationError,
    429: TooManyRequestsError,
}


BROKEN_ROWS = frozenset({"repair-needed", "row-not-understood"})
"""Kinds of problems that last until an admin has repaired the table."""


def refused(problem: Problem) -> RefusedError:
    """Return the error of the tree that stands for this answer."""
    if problem.kind in BROKEN_ROWS:
        return RepairNeededError(problem)
    fallback = ApiFailedError if problem.status >= 500 else RefusedError  # noqa: PLR2004  5xx
    return _BY_STATUS.get(problem.status, fallback)(problem)


PASSING_ERRORS = (ApiUnreachableError, ApiFailedError, TooManyRequestsError)
"""Errors that may pass by themselves: whoever waits for something asks again."""
