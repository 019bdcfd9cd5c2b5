"""Routes to functions, answers to HTTP."""

import json
from collections.abc import Callable
from typing import Any, TypeAlias

from aws_lambda_powertools.event_handler import APIGatewayRestResolver, Response

from trainmaster import __version__
from trainmaster.api.add_job import add_job
from trainmaster.api.job_list import list_jobs
from trainmaster.api.jobs import cancel_job, show_job
from trainmaster.api.patches import patch_job
from trainmaster.api.policy import put_paused, put_policy, show_policy
from trainmaster.api.pools import list_pools
from trainmaster.api.problems import no_such_route, problem
from trainmaster.api.request_context import Answer, Call, Outside, Visit, enter, enter_as_admin
from trainmaster.api.usage import show_usage
from trainmaster.api.violations import show_violations
from trainmaster.core.errors import TrainmasterError

Handler: TypeAlias = Callable[[dict[str, Any], Any], dict[str, Any]]
"""Proxy event and Lambda context in, proxy answer out."""

VERSION_HEADER = "trainmaster-version"


def build_api(outside: Outside) -> Handler:
    """The whole API over one set of ports; its version is on every answer, errors and unknown paths too."""
    app = routes(outside)
    return lambda event, context: _with_version(app.resolve(event, context))


def routes(outside: Outside) -> APIGatewayRestResolver:
    app = APIGatewayRestResolver()
    app.exception_handler(TrainmasterError)(problem)
    app.not_found(lambda _: no_such_route())

    def visit() -> Visit:
        return enter(_call(app.current_event.raw_event), outside)

    def admin_visit() -> Visit:
        return enter_as_admin(_call(app.current_event.raw_event), outside)

    app.post("/add-job")(lambda: _response(add_job(visit())))
    app.get("/jobs")(lambda: _response(list_jobs(visit())))
    app.get("/jobs/<name>")(lambda name: _response(show_job(visit(), name)))
    app.patch("/jobs/<name>")(lambda name: _response(patch_job(visit(), name)))
    app.delete("/jobs/<name>")(lambda name: _response(cancel_job(visit(), name)))
    app.get("/pools")(lambda: _response(list_pools(visit())))
    app.get("/usage")(lambda: _response(show_usage(visit())))
    app.get("/violations")(lambda: _response(show_violations(visit())))
    app.get("/policy")(lambda: _response(show_policy(admin_visit())))
    app.put("/policy")(lambda: _response(put_policy(admin_visit())))
    app.put("/policy/paused")(lambda: _response(put_paused(admin_visit())))
    return app


def _call(event: dict[str, Any]) -> Call:
    headers = {name.lower(): value for name, value in (event.get("headers") or {}).items()}
    return Call(
        user_arn=event.get("requestContext", {}).get("identity", {}).get("userArn"),
        query=event.get("multiValueQueryStringParameters") or {},
        body=event.get("body"),
        is_base64=bool(event.get("isBase64Encoded")),
        content_type=headers.get("content-type"),
    )


def _response(answer: Answer) -> Response[str]:
    return Response(answer.status.value, "application/json", json.dumps(answer.body))


def _with_version(answer: dict[str, Any]) -> dict[str, Any]:
    """So that a client can tell whether it is as new as the stack."""
    answer["multiValueHeaders"][VERSION_HEADER] = [__version__]
    return answer
