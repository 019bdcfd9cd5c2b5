"""An AwsError as the caller's protocol writes it."""

import json
from collections.abc import Mapping
from secrets import token_hex
from xml.sax.saxutils import escape

from moto.core.utils import get_service_model

from local.engine.calls import Protocol
from local.wire import AwsError, Response

QUERY_COMPATIBLE = frozenset({"cloudwatch", "sqs"})
"""Services that moved from the query protocol to JSON and repeat the old error code in a header."""

_STATUSES: Mapping[str, int] = {
    "InternalError": 500,
    "InternalFailure": 500,
    "InternalServerError": 500,
    "ServiceUnavailable": 503,
    "ServiceUnavailableException": 503,
    "SlowDown": 503,
    "RequestTimeout": 408,
    "AccessDenied": 403,
}
"""Common errors, which no service model lists."""
_BAD_REQUEST = 400
_SERVER_FAULT = 500


def error_response(error: AwsError, protocol: Protocol, service: str | None) -> Response:
    match protocol:
        case Protocol.JSON:
            return _json(error, service)
        case Protocol.QUERY:
            return _xml(error, f"<ErrorResponse><Error>{_detail(error)}</Error>", "</ErrorResponse>")
        case Protocol.S3:
            return _xml(error, f"<Error>{_detail(error)}", "</Error>")


def status_of(service: str, code: str) -> int:
    """Return the HTTP status that goes with an error code of a service."""
    for shape in get_service_model(service).error_shapes:
        error = shape.metadata.get("error", {})
        if code in {shape.name, error.get("code")} and "httpStatusCode" in error:
            return int(error["httpStatusCode"])
    return _STATUSES.get(code, _BAD_REQUEST)


def _json(error: AwsError, service: str | None) -> Response:
    request_id = token_hex(16)
    headers = {"Content-Type": "application/x-amz-json-1.0", "x-amzn-RequestId": request_id}
    if service in QUERY_COMPATIBLE:
        headers["x-amzn-query-error"] = f"{error.code};{_fault(error)}"
    body = {"__type": error.code, "message": error.message, **error.members}
    return Response(status=error.status, body=json.dumps(body).encode(), headers=headers)


def _xml(error: AwsError, start: str, end: str) -> Response:
    request_id = token_hex(16)
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n{start}<RequestId>{request_id}</RequestId>{end}'
    headers = {"Content-Type": "application/xml", "x-amzn-RequestId": request_id}
    return Response(status=error.status, body=text.encode(), headers=headers)


def _detail(error: AwsError) -> str:
    code, message = escape(error.code), escape(error.message)
    return f"<Type>{_fault(error)}</Type><Code>{code}</Code><Message>{message}</Message>"


def _fault(error: AwsError) -> str:
    return "Receiver" if error.status >= _SERVER_FAULT else "Sender"
