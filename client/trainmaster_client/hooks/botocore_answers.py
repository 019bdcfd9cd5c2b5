"""What a ``before-call`` handler gives botocore in place of a call: an answer, or what its user catches."""

from typing import Any, TypeAlias

from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders

from trainmaster_client import errors

Answer: TypeAlias = tuple[AWSResponse, dict[str, Any]]

_CODES: tuple[tuple[type[errors.TrainmasterClientError], str, int], ...] = (
    (errors.InvalidRequestError, "ValidationException", 400),
    (errors.PolicyViolationError, "ValidationException", 400),
    (errors.InvalidArgumentError, "ValidationException", 400),
    (errors.ForbiddenError, "AccessDeniedException", 403),
    (errors.CredentialsError, "UnrecognizedClientException", 403),
    (errors.NotFoundError, "ResourceNotFound", 404),
    (errors.ConflictError, "ResourceInUse", 409),
    (errors.TooManyRequestsError, "ThrottlingException", 429),
    (errors.ApiUnreachableError, "ServiceUnavailable", 503),
)
"""Error -> the code that SageMaker has for it, and the status. The first that fits counts."""
_ELSE = ("InternalFailure", 500)


def answered(parsed: dict[str, Any]) -> Answer:
    """As if the service had said so."""
    return _pair(200, parsed)


def refusal(error: errors.TrainmasterClientError) -> Answer:
    """Raised by botocore as ClientError, of the client's own class for the code where it has one."""
    found = ((code, status) for kind, code, status in _CODES if isinstance(error, kind))
    code, status = next(found, _ELSE)
    return refused_as(code, error, status=status)


def refused_as(code: str, error: errors.TrainmasterClientError, *, status: int = 400) -> Answer:
    """For an operation whose own code for it is another one."""
    return _pair(status, {"Error": {"Code": code, "Message": str(error)}})


def _pair(status: int, parsed: dict[str, Any]) -> Answer:
    metadata = {"RequestId": "", "HTTPStatusCode": status, "HTTPHeaders": {}, "RetryAttempts": 0}
    return AWSResponse("", status, HTTPHeaders(), None), {**parsed, "ResponseMetadata": metadata}
