"""The front of one stage of the REST API: authorise, route, invoke, answer."""

import json
import logging
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from local.clock import TwinClock
from local.deployment.gateway.proxy_event import Call, proxy_event, response_of
from local.deployment.gateway.resource_policy import ResourceStatement, combined
from local.deployment.gateway.routes import Routes
from local.deployment.lambda_runtime.invocation import Outcome
from local.identity.evaluator import Decision, Statement, normalized
from local.wire import AwsError, Principal, Request, Response

logger = logging.getLogger(__name__)

MAX_BODY_BYTES = 10 * 1024 * 1024
"""API Gateway quota: payload size of a REST API."""
MAX_EVENT_BYTES = 6 * 1024 * 1024
"""Lambda quota: payload of a synchronous invocation."""
VPC_ENDPOINT_HEADER = "x-twin-vpce"
"""Says through which VPC endpoint a request came; without it, the one the stack allows."""
LOCAL_VPC_ENDPOINT = "vpce-local"


class Callers(Protocol):
    def statements_of(self, principal: Principal) -> tuple[Statement, ...] | None:
        """Return the statements of the caller's own policies; None if nothing limits the caller."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RestApi:
    api_id: str
    stage: str
    prefix: str
    """Begin of every path, stage included."""
    arn: str
    routes: Routes
    policy: tuple[ResourceStatement, ...]
    callers: Callers
    invoke: Callable[[str, bytes], Outcome]
    """(ARN of the function, event) -> its answer."""
    clock: TwinClock
    answered: Callable[[Request, str, Response], None]
    """Told of each answer of a function: (request, path, response)."""

    def handle(self, request: Request, principal: Principal) -> Response:
        """Serve a call whose signature is verified; raises AwsError for what the gateway itself refuses."""
        path = request.raw_path.removeprefix(self.prefix)
        if len(request.body) > MAX_BODY_BYTES:
            raise _too_large()
        route = self.routes.find(request.method, path)
        if route is None:
            raise AwsError("MissingAuthenticationTokenException", "Missing Authentication Token", status=403)
        endpoint = request.headers.get(VPC_ENDPOINT_HEADER, LOCAL_VPC_ENDPOINT)
        self._authorize(f"{self.arn}/{self.stage}/{request.method}{path}", principal, endpoint)
        call = Call(
            request=request,
            path=path,
            route=route,
            principal=principal,
            api_id=self.api_id,
            stage=self.stage,
            request_id=str(uuid.uuid4()),
            vpc_endpoint_id=endpoint,
            at=self.clock.now(),
        )
        response = self._answer(call)
        self.answered(request, path, response)
        return response

    def _authorize(self, method_arn: str, principal: Principal, endpoint: str) -> None:
        facts = {
            "aws:SourceVpce": endpoint,
            "aws:PrincipalAccount": principal.account_id,
            "aws:PrincipalArn": principal.role_arn or principal.arn,
        }
        own = self.callers.statements_of(principal)
        decision = combined(self.policy, own, principal, call=(method_arn, normalized(facts)))
        if decision is not Decision.ALLOWED:
            suffix = " with an explicit deny" if decision is Decision.DENIED else ""
            message = (
                f"User: {principal.arn} is not authorized to perform: execute-api:Invoke"
                f" on resource: {method_arn}{suffix}"
            )
            raise AwsError("AccessDeniedException", message, status=403)

    def _answer(self, call: Call) -> Response:
        event = json.dumps(proxy_event(call)).encode()
        if len(event) > MAX_EVENT_BYTES:
            raise _too_large()
        outcome = self.invoke(call.route.function_arn, event)
        response = None if outcome.failed else response_of(outcome.payload)
        if response is None:
            logger.warning("the function behind %s failed: %s", call.path, outcome.payload[:1000])
            raise AwsError("InternalServerErrorException", "Internal server error", status=502)
        headers = {"x-amzn-requestid": call.request_id, "x-amz-apigw-id": call.request_id}
        return Response(status=response.status, body=response.body, headers=headers | dict(response.headers))


def _too_large() -> AwsError:
    return AwsError("RequestTooLargeException", "Request Too Long", status=413)
