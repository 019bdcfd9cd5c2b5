"""Tell errors of SageMaker apart: by code, and by text where one code has several meanings."""

import re
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from trainmaster.adapters.sagemaker_answers import printable
from trainmaster.adapters.turn_taking import THROTTLES
from trainmaster.core.errors import (
    AccessRefusedError,
    AccountLimitError,
    InstanceLimitError,
    NameTakenError,
    OtherLimitError,
    ServerFaultError,
    ThrottledError,
    TrainingRefusedError,
    TrainmasterError,
    UnavailableError,
    UnclassifiedTrainingError,
)

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
UNKNOWN_JOB = _NO_SUCH_JOB | {"ValidationException"}
"""Codes that Stop and Update return both for a name that does not exist and for a job that has ended."""
_NOT_FOUND = "Requested resource not found"
"""Text of the ValidationException by which Describe reports that there is no such training job.

The text is read because the same code also means a malformed request, and then the job may well run."""
_INSTANCES = " training job usage'"
"""End of the name of an instance type's quota in ResourceLimitExceeded; that of warm pools ends otherwise.

The text is read because one code stands for every quota. Where AWS words it otherwise, a start is sent again
without what the stack adds to the request."""
_FIGURES = re.compile(
    r"'(?P<quota>[^']{1,200})' is (?P<most>[0-9,]{1,12}) (?P<unit>[A-Za-z]{1,30}),"
    r" with current utilization of (?P<used>[0-9,]{1,12}) "
)
"""Name and figures of a quota in ResourceLimitExceeded.

They only spare an elastic job tries at widths that the quota does not allow. Where AWS words it otherwise,
half of the width is tried."""
NOT_SENT = "ParamValidationError"
"""botocore's own refusal of a request that its model does not take."""
DENIED = frozenset({"AccessDenied", "AccessDeniedException"})
NO_KEYS = frozenset(
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


def create_error(error: ClientError, request: Mapping[str, Any]) -> TrainmasterError:
    code, text = code_of(error), printable(error.response["Error"].get("Message", ""))
    if code == _NAME_IN_USE:
        return NameTakenError(text)
    if code == _ACCOUNT_LIMIT:
        return _account_limit(text)
    if code in THROTTLES:
        return ThrottledError(f"{code}: {text}")
    if code in _FOR_NOW:
        return UnavailableError(f"{code}: {text}")
    if (refusal := _refusal(code, text, request)) is not None:
        return refusal
    if error.response["ResponseMetadata"]["HTTPStatusCode"] >= SERVER_FAULT:
        return ServerFaultError(f"{code}: {text}")
    return UnclassifiedTrainingError(f"{code}: {text}")


def _account_limit(text: str) -> AccountLimitError:
    figures = _FIGURES.search(text)
    if figures is not None and not _counts_instances(figures):
        return OtherLimitError(text)
    left = None if figures is None else max(_count(figures["most"]) - _count(figures["used"]), 0)
    return (InstanceLimitError if _INSTANCES in text else AccountLimitError)(text, instances_left=left)


def _counts_instances(figures: re.Match[str]) -> bool:
    return figures["unit"] in {"Instance", "Instances"} and "training job" in figures["quota"]


def _count(digits: str) -> int:
    """Read a count as AWS may write it: ``1,000``."""
    return int(digits.replace(",", "") or 0)


def _refusal(code: str, text: str, request: Mapping[str, Any]) -> TrainingRefusedError | None:
    """Return None if the code says neither that a right is missing nor that the request is wrong."""
    if code in DENIED:
        return AccessRefusedError(f"{code}: {text}{_about_its_key(request)}")
    if code in NO_KEYS | _NOT_ADMITTED:
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


def is_missing(error: ClientError) -> bool:
    text: str = error.response["Error"].get("Message", "")
    says_so = code_of(error) == "ValidationException" and text.rstrip(".") == _NOT_FOUND
    return says_so or code_of(error) in _NO_SUCH_JOB


def unavailable(error: ClientError, operation: str) -> UnavailableError:
    kind = ThrottledError if code_of(error) in THROTTLES else UnavailableError
    return kind(f"{operation} was refused: {code_of(error)}")


def code_of(error: ClientError) -> str:
    return error.response["Error"]["Code"]
