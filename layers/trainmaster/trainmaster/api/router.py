"""Map routes to functions, and answers and errors to HTTP."""

import json
import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, TypeAlias

from aws_lambda_powertools.event_handler import APIGatewayRestResolver, Response

from trainmaster import __version__
from trainmaster.api.add_array import add_array
from trainmaster.api.add_job import add_job
from trainmaster.api.array_changes import cancel_array, patch_array
from trainmaster.api.array_reruns import rerun_array
from trainmaster.api.arrays import list_arrays, list_tasks, show_array
from trainmaster.api.caller import show_me, show_rules
from trainmaster.api.estimates import show_estimates
from trainmaster.api.events import show_events
from trainmaster.api.history_export import export_history
from trainmaster.api.job_list import list_jobs
from trainmaster.api.job_patches import patch_job
from trainmaster.api.jobs import cancel_job, show_job
from trainmaster.api.paging import fitting
from trainmaster.api.policy import put_paused, put_policy, show_policy
from trainmaster.api.pool_history import show_pool_history
from trainmaster.api.pool_list import list_pools
from trainmaster.api.repair import show_repair, start_repair
from trainmaster.api.request_context import (
    Answer,
    Call,
    Outside,
    RequestContext,
    enter_as_admin,
    enter_to_cancel,
    enter_to_change,
    enter_to_read,
)
from trainmaster.api.timeline import show_timeline
from trainmaster.api.usage import show_usage
from trainmaster.api.views import View, field_error_view
from trainmaster.api.violations import show_violations
from trainmaster.core.errors import (
    TooManyRequestsError,
    TrainmasterError,
    UnavailableError,
    WriteRefusedError,
)
from trainmaster.core.submission.repeats import KEY_HEADER

logger = logging.getLogger(__name__)
PROBLEM_JSON = "application/problem+json"
"""Source: RFC 9457."""
RETRY_AFTER_UNAVAILABLE_SECONDS = 1
MOST_ANSWER_BYTES = 5_500_000
"""Source: Lambda quotas, 6 MB of a synchronous answer, with its envelope."""
MOST_ERROR_BYTES = 500_000
"""Most bytes of the list of mistakes in an error."""


def problem(error: TrainmasterError) -> Response[str]:
    if isinstance(error, WriteRefusedError):  # nobody can wait it out: an operator has to hear of it
        logger.error("the table refused a write for good", exc_info=error)
    listed = fitting((field_error_view(mistake) for mistake in error.errors), most=MOST_ERROR_BYTES)
    body = {
        "type": f"urn:trainmaster:problem:{error.title.lower().replace(' ', '-')}",
        "title": error.title,
        "status": error.status.value,
        "detail": error.detail + _left_out(listed, error),
        "errors": listed,
    }
    return Response(error.status.value, PROBLEM_JSON, json.dumps(body), headers=_headers(error))


def _left_out(listed: list[View], error: TrainmasterError) -> str:
    count = len(error.errors)
    return f"; the first {len(listed)} of {count} mistakes are listed" if len(listed) < count else ""


def fault(error: Exception) -> Response[str]:
    """Answer our own mistake with a problem document like any other, and log what happened."""
    logger.error("the call failed", exc_info=error)
    return problem(TrainmasterError("something went wrong here; the log of the api function says what"))


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


Handler: TypeAlias = Callable[[dict[str, Any], Any], dict[str, Any]]
"""Takes a proxy event and the Lambda context, and returns the proxy answer."""

VERSION_HEADER = "trainmaster-version"


def build_api(outside: Outside) -> Handler:
    """Build the API over one set of ports; its version is on every answer, errors and unknown paths too."""
    app = routes(outside)
    return lambda event, context: _with_version(app.resolve(event, context))


def routes(outside: Outside) -> APIGatewayRestResolver:
    app = APIGatewayRestResolver()
    app.exception_handler(TrainmasterError)(problem)
    app.exception_handler(Exception)(fault)
    app.not_found(lambda _: no_such_route())

    def changing_context() -> RequestContext:
        return enter_to_change(_call(app.current_event.raw_event), outside)

    def cancelling_context() -> RequestContext:
        return enter_to_cancel(_call(app.current_event.raw_event), outside)

    def reading_context() -> RequestContext:
        return enter_to_read(_call(app.current_event.raw_event), outside)

    def admin_context() -> RequestContext:
        return enter_as_admin(_call(app.current_event.raw_event), outside)

    app.post("/add-job")(lambda: _response(add_job(_call(app.current_event.raw_event), outside)))
    app.get("/jobs")(lambda: _response(list_jobs(reading_context())))
    app.get("/jobs/<name>")(lambda name: _response(show_job(reading_context(), name)))
    app.patch("/jobs/<name>")(lambda name: _response(patch_job(changing_context(), name)))
    app.delete("/jobs/<name>")(lambda name: _response(cancel_job(cancelling_context(), name)))
    _route_arrays(app, outside)
    app.get("/pools")(lambda: _response(list_pools(reading_context())))
    app.get("/me")(lambda: _response(show_me(reading_context())))
    app.get("/rules")(lambda: _response(show_rules(reading_context())))
    app.get("/estimates")(lambda: _response(show_estimates(reading_context())))
    app.get("/usage")(lambda: _response(show_usage(reading_context())))
    app.get("/violations")(lambda: _response(show_violations(reading_context())))
    app.get("/timeline")(lambda: _response(show_timeline(reading_context())))
    app.get("/pools/history")(lambda: _response(show_pool_history(reading_context())))
    app.get("/events")(lambda: _response(show_events(reading_context())))
    app.get("/history/export")(lambda: _response(export_history(admin_context())))
    app.get("/policy")(lambda: _response(show_policy(admin_context())))
    app.put("/policy")(lambda: _response(put_policy(admin_context())))
    app.put("/policy/paused")(lambda: _response(put_paused(admin_context())))
    app.get("/repair")(lambda: _response(show_repair(admin_context())))
    app.post("/repair")(lambda: _response(start_repair(admin_context())))
    return app


def _route_arrays(app: APIGatewayRestResolver, outside: Outside) -> None:
    def call() -> Call:
        return _call(app.current_event.raw_event)

    def reading() -> RequestContext:
        return enter_to_read(call(), outside)

    def changing() -> RequestContext:
        return enter_to_change(call(), outside)

    app.post("/add-array")(lambda: _response(add_array(call(), outside)))
    app.get("/arrays")(lambda: _response(list_arrays(reading())))
    app.get("/arrays/<name>")(lambda name: _response(show_array(reading(), name)))
    app.patch("/arrays/<name>")(lambda name: _response(patch_array(changing(), name)))
    app.delete("/arrays/<name>")(lambda name: _response(cancel_array(enter_to_cancel(call(), outside), name)))
    app.get("/arrays/<name>/tasks")(lambda name: _response(list_tasks(reading(), name)))
    app.post("/arrays/<name>/rerun")(lambda name: _response(rerun_array(changing(), name)))


def _call(event: dict[str, Any]) -> Call:
    headers = {name.lower(): value for name, value in (event.get("headers") or {}).items()}
    return Call(
        user_arn=event.get("requestContext", {}).get("identity", {}).get("userArn"),
        query=event.get("multiValueQueryStringParameters") or {},
        body=event.get("body"),
        is_base64=bool(event.get("isBase64Encoded")),
        content_type=headers.get("content-type"),
        accept=headers.get("accept") or "",
        if_none_match=headers.get("if-none-match") or "",
        idempotency_key=headers.get(KEY_HEADER.lower()),
    )


def _response(answer: Answer) -> Response[str]:
    """Refuse answers that Lambda would drop with a 502 as too large; lists are cut well before that."""
    text = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
    if len(text.encode()) > MOST_ANSWER_BYTES:
        raise TrainmasterError(f"the answer has {len(text)} bytes; ask for less of it at once")
    return Response(answer.status.value, answer.content_type or None, text, headers=dict(answer.headers))


def _with_version(answer: dict[str, Any]) -> dict[str, Any]:
    """Add the stack's version, so that a client can compare it with its own."""
    answer["multiValueHeaders"][VERSION_HEADER] = [__version__]
    return answer
