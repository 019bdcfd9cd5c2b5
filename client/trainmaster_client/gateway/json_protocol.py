"""SageMaker's wire format, JSON 1.1: what a call asks for, answers and errors as AWS writes them. Pure."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import Any

CONTENT_TYPE = "application/x-amz-json-1.1"
REQUEST_ID_HEADER = "x-amzn-RequestId"

_TARGET = re.compile(r"SageMaker\.([A-Za-z0-9]{1,128})")
_NAMED_BY = {
    "CreateTrainingJob": "TrainingJobName",
    "DescribeTrainingJob": "TrainingJobName",
    "StopTrainingJob": "TrainingJobName",
    "UpdateTrainingJob": "TrainingJobName",
    "ListTags": "ResourceArn",
    "AddTags": "ResourceArn",
    "DeleteTags": "ResourceArn",
}
"""Member of each operation that says which job is meant; SageMaker requires it, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    status: int
    body: bytes | Iterable[bytes]
    headers: Mapping[str, str] = field(default_factory=dict)
    code: str = ""
    """AWS's name of the error; empty if there is none, or if AWS named it in the answer that is passed on."""


class CallRefusedError(Exception):
    """Raised for a call that the gateway refuses by itself, with AWS's name for it."""

    def __init__(self, code: str, message: str, *, status: int = HTTPStatus.BAD_REQUEST) -> None:
        super().__init__(message)
        self.code = code
        self.status = status


def operation_of(target: str) -> str:
    """Read the operation from the header X-Amz-Target.

    Raises CallRefusedError if it is not one of SageMaker's.
    """
    match = _TARGET.fullmatch(target)
    if match is None:
        raise CallRefusedError(
            "UnknownOperationException",
            "The gateway takes calls of SageMaker alone (X-Amz-Target: SageMaker.<operation>); other "
            "services have endpoints of their own.",
        )
    return match.group(1)


def require_name(operation: str, body: bytes) -> None:
    """Raises CallRefusedError where the body is no object, or lacks the name that the operation needs."""
    try:
        request = json.loads(body or b"{}")
    except ValueError:
        request = None
    if not isinstance(request, dict):
        raise CallRefusedError("SerializationException", "The body is not a JSON object.")
    member = _NAMED_BY.get(operation)
    if member is not None and not (isinstance(request.get(member), str) and request[member]):
        where = member[0].lower() + member[1:]
        raise CallRefusedError(
            "ValidationException",
            f"1 validation error detected: Value at '{where}' failed to satisfy constraint: "
            "Member must be a string that is not empty",
        )


def answer(document: Mapping[str, Any], *, request_id: str) -> Reply:
    body = json.dumps(document, default=_epoch_seconds).encode()
    return Reply(status=HTTPStatus.OK, body=body, headers=_headers(request_id))


def error(code: str, message: str, *, status: int, request_id: str) -> Reply:
    body = json.dumps({"__type": code, "message": message}).encode()
    headers = {**_headers(request_id), "x-amzn-ErrorType": code}
    return Reply(status=status, body=body, headers=headers, code=code)


def hooked(parsed: Mapping[str, Any], *, request_id: str) -> Reply:
    """Turn a hook's answer into a reply. AWS has one status for all mistakes of a caller."""
    metadata = parsed.get("ResponseMetadata") or {}
    request_id = metadata.get("RequestId") or request_id
    refused = parsed.get("Error")
    if not refused:
        document = {name: value for name, value in parsed.items() if name != "ResponseMetadata"}
        return answer(document, request_id=request_id)
    status = int(metadata.get("HTTPStatusCode") or HTTPStatus.INTERNAL_SERVER_ERROR)
    status = status if status >= HTTPStatus.INTERNAL_SERVER_ERROR else HTTPStatus.BAD_REQUEST
    return error(refused["Code"], refused["Message"], status=status, request_id=request_id)


def error_code(body: bytes, headers: Mapping[str, str]) -> str:
    """Return AWS's name of the error in an answer that is passed on; empty if it has none."""
    named = next((value for name, value in headers.items() if name.lower() == "x-amzn-errortype"), "")
    if not named:
        try:
            document = json.loads(body)
        except ValueError:
            return ""
        named = str(document.get("__type") or "") if isinstance(document, dict) else ""
    return named.partition(":")[0].rpartition("#")[2]


def _headers(request_id: str) -> dict[str, str]:
    return {"content-type": CONTENT_TYPE, REQUEST_ID_HEADER: request_id}


def _epoch_seconds(value: object) -> float:
    assert isinstance(value, datetime), f"no place for {type(value).__name__} in an answer of SageMaker"
    return value.timestamp()
