"""Errors as problem documents: the only place where an error becomes an HTTP answer."""

import json
from http import HTTPStatus

from aws_lambda_powertools.event_handler import Response

from trainmaster.api.views import field_error_view
from trainmaster.core.errors import TooManyRequestsError, TrainmasterError, UnavailableError

PROBLEM_JSON = "application/problem+json"
"""RFC 9457."""
RETRY_AFTER_UNAVAILABLE_SECONDS = 1


def problem(error: TrainmasterError) -> Response[str]:
    body = {
        "type": f"urn:trainmaster:problem:{error.title.lower().replace(' ', '-')}",
        "title": error.title,
        "status": error.status.value,
        "detail": error.detail,
        "errors": [field_error_view(one) for one in error.errors],
    }
    return Response(error.status.value, PROBLEM_JSON, json.dumps(body), headers=_headers(error))


def no_such_route() -> Response[str]:
    body = {
        "type": "urn:trainmaster:problem:not-found",
        "title": "Not found",
        "status": HTTPStatus.NOT_FOUND.value,
        "detail": "there is nothing under this path and method",
        "errors": [],
    }
    return Response(HTTPStatus.NOT_FOUND.value, PROBLEM_JSON, json.dumps(body))


def _headers(error: TrainmasterError) -> dict[str, str | list[str]]:
    if isinstance(error, TooManyRequestsError):
        return {"Retry-After": str(error.retry_after)}
    if isinstance(error, UnavailableError):
        return {"Retry-After": str(RETRY_AFTER_UNAVAILABLE_SECONDS)}
    return {}
