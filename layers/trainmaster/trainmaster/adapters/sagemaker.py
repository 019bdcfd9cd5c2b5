"""Call SageMaker with requests as its model wants them, and tell errors apart by code, twice by text."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    ParamValidationError,
)

from trainmaster.adapters.launcher_sessions import LauncherSessions
from trainmaster.adapters.sagemaker_answers import in_milliseconds, observation_of, printable, request_of
from trainmaster.adapters.turn_taking import THROTTLES, TurnTaking
from trainmaster.core.errors import (
    AccessRefusedError,
    AccountLimitError,
    InstanceLimitError,
    LauncherRefusedError,
    NameTakenError,
    OutcomeUnknownError,
    ServerFaultError,
    StopDeniedError,
    ThrottledError,
    TrainingRefusedError,
    TrainmasterError,
    UnavailableError,
    UnclassifiedTrainingError,
    UnreachableError,
)
from trainmaster.core.jobs.observations import Described, Listed, Observation
from trainmaster.core.request.request import Launcher

# Codes of the SageMaker API and of AWS's common errors.
_NAME_IN_USE = "ResourceInUse"
_ACCOUNT_LIMIT = "ResourceLimitExceeded"
_FOR_NOW = frozenset({"ServiceUnavailable", "CapacityError"})
_REFUSED = {
    "ValidationException": "ValidationException",
    "ValidationError": "ValidationException",
    "ResourceNotFound": "ResourceNotFound",
    "ResourceNotFoundException": "ResourceNotFound",
    "InvalidParameterValue": "InvalidParameterValue",
}
"""Codes that refuse the content of a request, each with its one spelling."""
_NO_SUCH_JOB = frozenset({"ResourceNotFound", "ResourceNotFoundException"})
_UNKNOWN_JOB = _NO_SUCH_JOB | {"ValidationException"}
"""Codes that Stop and Update return both for a name that does not exist and for a job that has ended."""
_NOT_FOUND = "Requested resource not found"
"""Text of the ValidationException by which Describe reports that there is no such training job.

The text is read because the same code also means a malformed request, and then the job may well run."""
_INSTANCES = " training job usage'"
"""End of the name of an instance type's quota in ResourceLimitExceeded; that of warm pools ends otherwise.

The text is read because one code stands for every quota. Where AWS words it otherwise, a start is sent again
without what the stack adds to the request."""
LEAN = ("create_training_job", "stop_training_job")
"""Methods of the client whose requests and answers hold only texts and numbers."""
_NOT_SENT = "ParamValidationError"
"""botocore's own refusal of a request that its model does not take."""
_DENIED = frozenset({"AccessDenied", "AccessDeniedException"})
_NO_KEYS = frozenset(
    {"ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId", "UnrecognizedClientException"}
)
"""Codes of a session that has expired, or was ended early."""
_NOT_ADMITTED = frozenset(
    {
        "IncompleteSignature",
        "InvalidSignatureException",
        "MissingAuthenticationToken",
        "NotAuthorized",
        "OptInRequired",
        "RequestExpired",
        "SignatureDoesNotMatch",
        "UnauthorizedOperation",
    }
)
"""Codes by which AWS rejects our keys, clock or account. Source: AWS API references, common errors."""
SERVER_FAULT = 500
PAGES = 4
"""Pages of ListTrainingJobs in one look, of 100 each: the lowest reported quota is 2 calls a second."""
PAGES_OF_A_TIME = 20
"""Pages read to find one training job, which is rare: a page may be empty although more follow."""
AROUND = timedelta(minutes=15)
"""Longest time between a claim and the creation of its training job, in either direction."""
_RUNNING = {
    "StatusEquals": "InProgress",
    "SortBy": "CreationTime",
    "SortOrder": "Descending",
    "MaxResults": 100,
}


class SageMakerTraining:
    """Implements TrainingApi and TrainingJobReader; without ``calls`` each call is made once, at once.

    ``launchers`` is needed where teams have launcher roles.
    """

    def __init__(
        self, client: Any, *, calls: TurnTaking | None = None, launchers: LauncherSessions | None = None
    ) -> None:
        self._client = client
        self._calls = calls or TurnTaking()
        self._launchers = launchers

    def create(self, request: Mapping[str, Any], *, launcher: Launcher | None = None) -> str:
        """Create the training job and return its ARN; the claim has already waited for the call's turn."""
        try:
            answer = self._calls.make(
                "CreateTrainingJob",
                lambda: self._client_of(launcher).create_training_job(**request),
                has_turn=True,
            )
        except ParamValidationError as error:
            raise TrainingRefusedError(printable(str(error)), code=_NOT_SENT) from error
        except ClientError as error:
            if launcher and self._launchers and _code(error) in _DENIED | _NO_KEYS:
                self._launchers.forget(launcher)
            raise _create_error(error, request) from error
        except (ConnectTimeoutError, EndpointConnectionError) as error:
            raise UnreachableError("SageMaker could not be reached") from error
        except BotoCoreError as error:
            raise OutcomeUnknownError("SageMaker did not answer CreateTrainingJob") from error
        arn: str = answer["TrainingJobArn"]
        return arn

    def _client_of(self, launcher: Launcher | None) -> Any:
        if launcher is None:
            return self._client
        if self._launchers is None:
            raise LauncherRefusedError(f"this function starts nothing as {launcher.role_arn}")
        return self._launchers.client(launcher)

    def describe(self, training_job_name: str) -> Observation | None:
        answer = self._describe(training_job_name)
        return None if answer is None else observation_of(answer)

    def described(self, training_job_name: str) -> Described | None:
        answer = self._describe(training_job_name)
        if answer is None:
            return None
        return Described(
            observation=observation_of(answer),
            request=request_of(answer),
            created_at=in_milliseconds(answer["CreationTime"]),
            tuning_job_arn=answer.get("TuningJobArn"),
        )

    def _describe(self, training_job_name: str) -> dict[str, Any] | None:
        try:
            answer: dict[str, Any] = self._calls.make(
                "DescribeTrainingJob",
                lambda: self._client.describe_training_job(TrainingJobName=training_job_name),
            )
        except ClientError as error:
            if _is_missing(error):
                return None
            raise _unavailable(error, "DescribeTrainingJob") from error
        except BotoCoreError as error:
            raise UnavailableError("SageMaker did not answer DescribeTrainingJob") from error
        return answer

    def in_progress(self, *, limit: int) -> tuple[Listed, ...]:
        """List running jobs. SageMaker filters pages after cutting them, so one of 100 may show none."""
        try:
            pages = list(
                islice(
                    self._calls.pages("ListTrainingJobs", self._client.list_training_jobs, **_RUNNING), PAGES
                )
            )
        except ClientError as error:
            raise _unavailable(error, "ListTrainingJobs") from error
        except BotoCoreError as error:
            raise UnavailableError("SageMaker did not answer ListTrainingJobs") from error
        summaries = (summary for page in pages for summary in page["TrainingJobSummaries"])
        return tuple(
            Listed(training_job_name=job["TrainingJobName"], created_at=in_milliseconds(job["CreationTime"]))
            for job in islice(summaries, limit)
        )

    def is_listed(self, training_job_name: str, *, created: datetime) -> bool:
        """Tell whether the job is listed; True also if so many were created then that pages remain unread."""
        listing = self._calls.pages(
            "ListTrainingJobs",
            self._client.list_training_jobs,
            NameContains=training_job_name,
            CreationTimeAfter=created - AROUND,
            CreationTimeBefore=created + AROUND,
            MaxResults=100,
        )
        try:
            pages = list(islice(listing, PAGES_OF_A_TIME))
        except ClientError as error:
            raise _unavailable(error, "ListTrainingJobs") from error
        except BotoCoreError as error:
            raise UnavailableError("SageMaker did not answer ListTrainingJobs") from error
        names = [summary["TrainingJobName"] for page in pages for summary in page["TrainingJobSummaries"]]
        return training_job_name in names or bool(pages[-1].get("NextToken"))

    def tags(self, training_job_arn: str) -> dict[str, str]:
        tags: dict[str, str] = {}
        try:
            for page in self._calls.pages("ListTags", self._client.list_tags, ResourceArn=training_job_arn):
                tags |= {tag["Key"]: tag["Value"] for tag in page["Tags"]}
        except ClientError as error:
            raise _unavailable(error, "ListTags") from error
        except BotoCoreError as error:
            raise UnavailableError("SageMaker did not answer ListTags") from error
        return tags

    def stop(self, training_job_name: str) -> None:
        try:
            self._calls.make(
                "StopTrainingJob", lambda: self._client.stop_training_job(TrainingJobName=training_job_name)
            )
        except ClientError as error:
            if _code(error) in _DENIED:
                raise StopDeniedError("the stack has no right to stop it (StopTrainingJob)") from error
            if _code(error) not in _UNKNOWN_JOB:
                raise _unavailable(error, "StopTrainingJob") from error
        except BotoCoreError as error:
            raise UnavailableError("SageMaker did not answer StopTrainingJob") from error

    def keep_alive(self, training_job_name: str, period: timedelta) -> bool:
        resources = {"KeepAlivePeriodInSeconds": int(period.total_seconds())}
        try:
            self._calls.make(
                "UpdateTrainingJob",
                lambda: self._client.update_training_job(
                    TrainingJobName=training_job_name, ResourceConfig=resources
                ),
            )
        except ClientError as error:
            if _code(error) not in _UNKNOWN_JOB:
                raise _unavailable(error, "UpdateTrainingJob") from error
            return False
        except BotoCoreError as error:
            raise UnavailableError("SageMaker did not answer UpdateTrainingJob") from error
        return True


def _create_error(error: ClientError, request: Mapping[str, Any]) -> TrainmasterError:
    code, text = _code(error), printable(error.response["Error"].get("Message", ""))
    if code == _NAME_IN_USE:
        return NameTakenError(text)
    if code == _ACCOUNT_LIMIT:
        return (InstanceLimitError if _INSTANCES in text else AccountLimitError)(text)
    if code in THROTTLES:
        return ThrottledError(f"{code}: {text}")
    if code in _FOR_NOW:
        return UnavailableError(f"{code}: {text}")
    if (refusal := _refusal(code, text, request)) is not None:
        return refusal
    if error.response["ResponseMetadata"]["HTTPStatusCode"] >= SERVER_FAULT:
        return ServerFaultError(f"{code}: {text}")
    return UnclassifiedTrainingError(f"{code}: {text}")


def _refusal(code: str, text: str, request: Mapping[str, Any]) -> TrainingRefusedError | None:
    """Return None if the code says neither that a right is missing nor that the request is wrong."""
    if code in _DENIED:
        return AccessRefusedError(f"{code}: {text}{_about_its_key(request)}")
    if code in _NO_KEYS | _NOT_ADMITTED:
        return AccessRefusedError(f"{code}: {text}", code=code)
    if code in _REFUSED:
        return TrainingRefusedError(f"{code}: {text}", code=_REFUSED[code])
    return None


def _about_its_key(request: Mapping[str, Any]) -> str:
    """Name the volumes' key as a possible cause: AWS denies its use by the same code as any other right."""
    key = request.get("ResourceConfig", {}).get("VolumeKmsKeyId")
    if not key:
        return ""
    return (
        f". If the key of its volumes is meant (VolumeKmsKeyId {key}): allow its role kms:CreateGrant on it,"
        " or have the key listed in the stack's parameter TrainingKmsKeyArns"
    )


def _is_missing(error: ClientError) -> bool:
    text: str = error.response["Error"].get("Message", "")
    says_so = _code(error) == "ValidationException" and text.rstrip(".") == _NOT_FOUND
    return says_so or _code(error) in _NO_SUCH_JOB


def _unavailable(error: ClientError, operation: str) -> UnavailableError:
    kind = ThrottledError if _code(error) in THROTTLES else UnavailableError
    return kind(f"{operation} was refused: {_code(error)}")


def _code(error: ClientError) -> str:
    return error.response["Error"]["Code"]
