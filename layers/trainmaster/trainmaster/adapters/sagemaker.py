"""SageMaker: requests as its model wants them; errors told apart by code, never by text."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice, zip_longest
from typing import Any

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    ParamValidationError,
)

from trainmaster.adapters.turn_taking import THROTTLES, TurnTaking
from trainmaster.core.diagnosis.evidence import without_secrets
from trainmaster.core.errors import (
    AccountLimitError,
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
from trainmaster.core.jobs.observations import (
    TERMINAL_STATUSES,
    Described,
    Listed,
    Observation,
    TrainingInterval,
)
from trainmaster.core.request.request_shapes import ROOT, SHAPES

_ONLY_SHOWN = frozenset({"SelectedInstanceType", "SelectedInstanceCount"})
"""Members of ResourceConfig that only Describe has. Source: SageMaker API, ResourceConfig."""


def request_of(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Members that CreateTrainingJob takes, without the empty texts, lists and maps that Describe adds."""
    request: dict[str, Any] = _kept(answer, ROOT)
    resources = request.get("ResourceConfig", {})
    if "InstanceGroups" in resources or "InstancePreferences" in resources:
        # A count of 0 stands for none; with groups it must not be there.
        request["ResourceConfig"] = {name: one for name, one in resources.items() if one != 0}
    return request


def _kept(content: Any, shape_name: str) -> Any:
    shape = SHAPES[shape_name]
    match shape["type"]:
        case "structure":
            members = shape["members"].items()
            kept = {
                name: _kept(content[name], member)
                for name, member in members
                if name in content and name not in _ONLY_SHOWN
            }
            return {name: one for name, one in kept.items() if one not in ("", [], {}, None)}
        case "list":
            return [_kept(part, shape["member"]) for part in content]
        case "map":
            return dict(content)
        case _:
            return content


# Codes of the SageMaker API and of AWS's common errors.
_NAME_IN_USE = "ResourceInUse"
_ACCOUNT_LIMIT = "ResourceLimitExceeded"
_FOR_NOW = frozenset({"ServiceUnavailable", "CapacityError"})
_FOR_GOOD = frozenset(
    {
        "ValidationException",
        "ValidationError",
        "AccessDenied",
        "AccessDeniedException",
        "ResourceNotFound",
        "ResourceNotFoundException",
        "InvalidParameterValue",
    },
)
_UNKNOWN_JOB = frozenset({"ValidationException", "ResourceNotFound", "ResourceNotFoundException"})
"""What Describe and Stop answer about a name that does not exist, or (Stop) about a job that is over."""
_DENIED = frozenset({"AccessDenied", "AccessDeniedException"})
SERVER_FAULT = 500
PAGES = 4
"""Of ListTrainingJobs in one look, of 100 each: the lowest reported quota is 2 calls a second."""
_RUNNING = {
    "StatusEquals": "InProgress",
    "SortBy": "CreationTime",
    "SortOrder": "Descending",
    "MaxResults": 100,
}
MAX_REASON = 1024
"""Characters of FailureReason kept. Source: SageMaker API, FailureReason."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Written by user code: may try to move the terminal's cursor or turn the text around."""


class SageMakerTraining:
    """TrainingApi and TrainingJobReader; without ``calls`` each call is made once, at once."""

    def __init__(self, client: Any, *, calls: TurnTaking | None = None) -> None:
        self._client = client
        self._calls = calls or TurnTaking()

    def create(self, request: Mapping[str, Any]) -> str:
        """Whoever claimed the instances has waited for its turn before."""
        try:
            answer = self._calls.make(
                "CreateTrainingJob", lambda: self._client.create_training_job(**request), has_turn=True
            )
        except ParamValidationError as error:
            raise TrainingRefusedError(str(error)) from error
        except ClientError as error:
            raise _create_error(error, request) from error
        except (ConnectTimeoutError, EndpointConnectionError) as error:
            raise UnreachableError("SageMaker could not be reached") from error
        except BotoCoreError as error:
            raise OutcomeUnknownError("SageMaker did not answer CreateTrainingJob") from error
        arn: str = answer["TrainingJobArn"]
        return arn

    def describe(self, training_job_name: str) -> Observation | None:
        answer = self._describe(training_job_name)
        return None if answer is None else _observation(answer)

    def described(self, training_job_name: str) -> Described | None:
        answer = self._describe(training_job_name)
        if answer is None:
            return None
        return Described(
            observation=_observation(answer),
            request=request_of(answer),
            created_at=_in_milliseconds(answer["CreationTime"]),
            tuning_job_arn=answer.get("TuningJobArn"),
        )

    def _describe(self, training_job_name: str) -> dict[str, Any] | None:
        try:
            answer: dict[str, Any] = self._calls.make(
                "DescribeTrainingJob",
                lambda: self._client.describe_training_job(TrainingJobName=training_job_name),
            )
        except ClientError as error:
            if _code(error) in _UNKNOWN_JOB:
                return None
            raise _unavailable(error, "DescribeTrainingJob") from error
        except BotoCoreError as error:
            raise UnavailableError("SageMaker did not answer DescribeTrainingJob") from error
        return answer

    def in_progress(self, *, limit: int) -> tuple[Listed, ...]:
        """Pages are cut before they are filtered, so a page of 100 may show none of many that run."""
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
        found = (one for page in pages for one in page["TrainingJobSummaries"])
        return tuple(
            Listed(training_job_name=one["TrainingJobName"], created_at=_in_milliseconds(one["CreationTime"]))
            for one in islice(found, limit)
        )

    def tags(self, training_job_arn: str) -> dict[str, str]:
        found: dict[str, str] = {}
        try:
            for page in self._calls.pages("ListTags", self._client.list_tags, ResourceArn=training_job_arn):
                found |= {tag["Key"]: tag["Value"] for tag in page["Tags"]}
        except ClientError as error:
            raise _unavailable(error, "ListTags") from error
        except BotoCoreError as error:
            raise UnavailableError("SageMaker did not answer ListTags") from error
        return found

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
        return AccountLimitError(text)
    if code in THROTTLES:
        return ThrottledError(f"{code}: {text}")
    if code in _FOR_NOW:
        return UnavailableError(f"{code}: {text}")
    if code in _FOR_GOOD:
        return TrainingRefusedError(f"{code}: {text}{_about_its_key(code, request)}")
    if error.response["ResponseMetadata"]["HTTPStatusCode"] >= SERVER_FAULT:
        return ServerFaultError(f"{code}: {text}")
    return UnclassifiedTrainingError(f"{code}: {text}")


def _about_its_key(code: str, request: Mapping[str, Any]) -> str:
    """Who may not use the key of a job's volumes is denied, as for other rights: said as a possibility."""
    key = request.get("ResourceConfig", {}).get("VolumeKmsKeyId")
    if code not in _DENIED or not key:
        return ""
    return (
        f". If the key of its volumes is meant (VolumeKmsKeyId {key}): allow its role kms:CreateGrant on it,"
        " or have the key listed in the stack's parameter TrainingKmsKeyArns"
    )


def _unavailable(error: ClientError, operation: str) -> UnavailableError:
    kind = ThrottledError if _code(error) in THROTTLES else UnavailableError
    return kind(f"{operation} was refused: {_code(error)}")


def _code(error: ClientError) -> str:
    return error.response["Error"]["Code"]


def _observation(answer: Mapping[str, Any]) -> Observation:
    status = answer["TrainingJobStatus"]
    ended = answer.get("TrainingEndTime") or answer.get("LastModifiedTime")
    reason = answer.get("FailureReason")
    training_intervals = tuple(_training_intervals(answer))
    return Observation(
        training_job_name=answer["TrainingJobName"],
        training_job_arn=answer["TrainingJobArn"],
        status=status,
        secondary_status=answer["SecondaryStatus"],
        failure_reason=None if reason is None else _shown(reason),
        training_since=training_intervals[0].since if training_intervals else None,
        ended_at=_utc(ended) if status in TERMINAL_STATUSES else None,
        selected_type=answer.get("ResourceConfig", {}).get("SelectedInstanceType"),
        warm_status=answer.get("WarmPoolStatus", {}).get("Status"),
        retained=_seconds(answer.get("WarmPoolStatus", {}), "ResourceRetainedBillableTimeInSeconds"),
        billable=_seconds(answer, "BillableTimeInSeconds"),
        up=_seconds(answer, "TrainingTimeInSeconds"),
        interruptions=sum(one["Status"] == "Interrupted" for one in _transitions(answer)),
        training_intervals=training_intervals,
    )


def _seconds(answer: Mapping[str, Any], name: str) -> timedelta | None:
    return timedelta(seconds=answer[name]) if name in answer else None


def _transitions(answer: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    transitions: Sequence[Mapping[str, Any]] = answer.get("SecondaryStatusTransitions", [])
    return transitions


def _training_intervals(answer: Mapping[str, Any]) -> Iterator[TrainingInterval]:
    """Times in status Training; one that says no end lasts until the next status."""
    transitions = _transitions(answer)
    for one, after in zip_longest(transitions, transitions[1:]):
        if one["Status"] == "Training":
            until = one.get("EndTime") or (after["StartTime"] if after else None)
            yield TrainingInterval(since=one["StartTime"].astimezone(UTC), until=_utc(until))


def _utc(instant: datetime | None) -> datetime | None:
    return None if instant is None else instant.astimezone(UTC)


def _in_milliseconds(instant: datetime) -> datetime:
    """As the table keeps it."""
    exact = instant.astimezone(UTC)
    return exact.replace(microsecond=exact.microsecond // 1000 * 1000)


def _shown(reason: str) -> str:
    """It quotes what the program said last, and is kept and mailed: secrets are hidden before it is cut."""
    return printable(without_secrets(reason[: 2 * MAX_REASON]))


def printable(text: str) -> str:
    """Safe to store, log and print: no control or direction-changing characters, bounded."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)[:MAX_REASON]
