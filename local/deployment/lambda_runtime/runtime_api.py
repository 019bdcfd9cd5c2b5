"""Lambda's Runtime API, which the runtime client in each function process talks to.

Paths: ``/_runtime/<token>/<function>/<instance>/2018-06-01/runtime/...`` (AWS has one host per process
instead, which nothing but the process reaches); the front door takes the token away.
"""

import re

from local.clock import TwinClock
from local.deployment.lambda_runtime.invocation import Outcome
from local.deployment.lambda_runtime.pool import FunctionPool
from local.deployment.wiring import Function
from local.wire import Request, Response

PREFIX = "/_runtime"
_PATH = re.compile(PREFIX + r"/([^/]+)/([^/]+)/2018-06-01/runtime/(.+)")
_ACCEPTED = Response(status=202, body=b'{"status":"OK"}', headers={"content-type": "application/json"})
_GONE = Response(status=410)
_NOT_FOUND = Response(status=404)
_NOT_ASKED = Response(status=400, body=b'{"errorType":"InvalidRequestID"}')


class RuntimeApi:
    """Routes calls of function processes to the pool of their function."""

    def __init__(self, clock: TwinClock) -> None:
        self._clock = clock
        self._functions: dict[str, tuple[Function, FunctionPool]] = {}

    def add(self, function: Function, pool: FunctionPool) -> None:
        self._functions[function.name] = (function, pool)

    def handle(self, request: Request) -> Response:
        match = _PATH.fullmatch(request.raw_path)
        if match is None or match[1] not in self._functions:
            return _NOT_FOUND
        function, pool = self._functions[match[1]]
        instance_id, call = match[2], match[3]
        if call == "invocation/next":
            return self._next(function, pool, instance_id)
        if call == "init/error":
            pool.init_failed(instance_id, Outcome(payload=request.body, failed=True))
            return _ACCEPTED
        return _take_answer(pool, instance_id, call, request.body)

    def _next(self, function: Function, pool: FunctionPool, instance_id: str) -> Response:
        invocation = pool.next(instance_id)
        if invocation is None:
            return _GONE
        deadline = self._clock.now() + function.timeout
        headers = {
            "content-type": "application/json",
            "lambda-runtime-aws-request-id": invocation.request_id,
            "lambda-runtime-deadline-ms": str(int(deadline.timestamp() * 1000)),
            "lambda-runtime-invoked-function-arn": function.arn,
            "lambda-runtime-trace-id": "Root=1-00000000-000000000000000000000000;Sampled=0",
        }
        return Response(status=200, body=invocation.payload, headers=headers)


def _take_answer(pool: FunctionPool, instance_id: str, call: str, body: bytes) -> Response:
    verb, _, rest = call.partition("/")
    request_id, _, kind = rest.partition("/")
    if verb != "invocation" or kind not in {"response", "error"}:
        return _NOT_FOUND
    outcome = Outcome(payload=body, failed=kind == "error")
    return _ACCEPTED if pool.answer(instance_id, request_id, outcome) else _NOT_ASKED
