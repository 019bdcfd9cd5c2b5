"""The product's reading of a SageMaker answer: its own adapter, given that answer again."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, NoReturn

from botocore.exceptions import ClientError
from trainmaster.adapters.sagemaker import SageMakerTraining
from trainmaster.core.errors import (
    AccountLimitError,
    NameTakenError,
    TrainingRefusedError,
    TrainmasterError,
    UnavailableError,
)

Answer = Mapping[str, Any]
"""Answer of a call as noted: code, text, status."""

THROTTLED = frozenset(
    {
        "ThrottlingException",
        "Throttling",
        "ThrottledException",
        "TooManyRequestsException",
        "RequestLimitExceeded",
        "SlowDown",
    }
)
"""Error codes for throttling of the services called here. Source: their API references, "Common Errors"."""

TAKEN = "taken"
"""The call succeeded."""
REFUSED_FOR_GOOD = TrainingRefusedError.__name__
LIMIT = AccountLimitError.__name__
NAME_TAKEN = NameTakenError.__name__
NOTHING_THERE = "nothing there"
"""Reading of an answer after which the product continues as if there were no such job."""


class _Answering:
    """Client whose every operation raises the same refusal."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def get_paginator(self, _operation: str) -> "_Answering":
        return self

    def __getattr__(self, operation: str) -> Any:  # noqa: ANN401  as boto3 makes its methods
        def call(**_: object) -> NoReturn:
            error = {"Code": self._answer["code"], "Message": self._answer["text"]}
            response = {"Error": error, "ResponseMetadata": {"HTTPStatusCode": self._answer["status"]}}
            raise ClientError(response, operation)  # type: ignore[arg-type]  # the members that are read

        return call


def product_reading(operation: str, answer: Answer) -> str:
    """Return the name of the error that the adapter raises, or of what the product continues with."""
    if answer["code"] is None:
        return TAKEN
    error = _raised(operation, SageMakerTraining(_Answering(answer)))
    if isinstance(error, AccountLimitError):
        return LIMIT
    if isinstance(error, TrainingRefusedError):
        return REFUSED_FOR_GOOD
    return NOTHING_THERE if error is None else type(error).__name__


def is_for_later(operation: str, answer: Answer) -> bool:
    """Tell whether the product tries again, as after throttling; a limit of the account is something else."""
    error = _raised(operation, SageMakerTraining(_Answering(answer)))
    return isinstance(error, UnavailableError) and not isinstance(error, AccountLimitError)


def _raised(operation: str, adapter: SageMakerTraining) -> TrainmasterError | None:
    try:
        match operation:
            case "CreateTrainingJob":
                adapter.create({})
            case "DescribeTrainingJob":
                adapter.describe("name")
            case "StopTrainingJob":
                adapter.stop("name")
            case "UpdateTrainingJob":
                adapter.keep_alive("name", timedelta())
            case "ListTags":
                adapter.tags("arn")
            case _:
                adapter.in_progress(limit=1)
    except TrainmasterError as error:
        return error
    return None
