"""The gateway as an ASGI application: ``/<token>/`` is SageMaker's endpoint; ``ui`` and ``api`` are none."""

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from trainmaster_client.gateway.admission import Received, check_signature, check_token, refuse_browsers
from trainmaster_client.gateway.call_counts import CallCounts
from trainmaster_client.gateway.credential_chain import RenewedCredentials
from trainmaster_client.gateway.json_protocol import CallRefusedError, Reply, error
from trainmaster_client.gateway.queued_calls import QueuedCalls

LARGEST_BODY_BYTES = 10 * 1024 * 1024
"""The queue's API takes no more. Source: API Gateway quotas, payload size."""

MOST_CREATES = 20
"""CreateTrainingJob calls at once; the others wait outside of the threads."""
_CREATE = ".CreateTrainingJob"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """All that the gateway's answers need."""

    token: str
    calls: QueuedCalls
    credentials: RenewedCredentials
    region: str
    describe: Callable[[], dict[str, Any]]
    """Returns the facts that doctor reads beside the counts."""
    counts: CallCounts
    ui_url: Callable[[], str]
    """Returns a URL that opens the pages once."""


def application(gateway: Gateway, *, pages: Sequence[BaseRoute] = ()) -> Starlette:
    """Make the application. ``pages`` are routes below ``/ui/`` and ``/api/``, which are tried first."""
    door = _Door(gateway)
    return Starlette(
        routes=[
            *pages,
            Route("/{token}/status", door.status, methods=["GET"]),
            Route("/{token}/ui-url", door.ui_url, methods=["POST"]),
            Route("/{token}", door.call, methods=["POST"]),
            Route("/{token}/", door.call, methods=["POST"]),
        ]
    )


class _Door:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._creates: CapacityLimiter | None = None

    async def call(self, request: Request) -> Response:
        began = time.perf_counter()
        operation, reply = "", None
        try:
            self._admit(request)
            received = Received(
                path=request.scope["raw_path"].decode("ascii").partition("?")[0],
                headers=dict(request.headers),
                body=await body_of(request),
            )
            operation, reply = await self._in_thread(received)
        except CallRefusedError as refused:
            reply = _refused(refused)
        except ClientDisconnect:
            reply = _refused(CallRefusedError("RequestTimeout", "The caller left."))
        self._gateway.counts.add(operation, code=reply.code, seconds=time.perf_counter() - began)
        return _response(reply)

    async def status(self, request: Request) -> Response:
        try:
            self._admit(request)
        except CallRefusedError as refused:
            return _response(_refused(refused))
        described = await run_in_threadpool(self._gateway.describe)
        return JSONResponse({**described, "operations": self._gateway.counts.as_json()})

    async def ui_url(self, request: Request) -> Response:
        try:
            self._admit(request)
        except CallRefusedError as refused:
            return _response(_refused(refused))
        return JSONResponse({"ui_url": self._gateway.ui_url()})

    def _admit(self, request: Request) -> None:
        refuse_browsers(dict(request.headers))
        check_token(request.path_params["token"], self._gateway.token)

    async def _in_thread(self, received: Received) -> tuple[str, Reply]:
        """Answer in a thread.

        Creates may wait a minute for the rate limit: they must not take every thread.
        """
        if not received.headers.get("x-amz-target", "").endswith(_CREATE):
            return await run_in_threadpool(self._answer, received)
        if self._creates is None:  # made in the loop that it belongs to
            self._creates = CapacityLimiter(MOST_CREATES)
        return await to_thread.run_sync(self._answer, received, limiter=self._creates)

    def _answer(self, received: Received) -> tuple[str, Reply]:
        """Answer in a thread: meanwhile credentials may be renewed and other services called."""
        gateway = self._gateway
        own = gateway.credentials.given()
        check_signature(received, own, region=gateway.region, now=datetime.now(UTC))
        return gateway.calls.answer(received.headers, received.body)


async def body_of(request: Request) -> bytes:
    """Read the body. Raises CallRefusedError if it is too large."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > LARGEST_BODY_BYTES:
            raise CallRefusedError(
                "RequestEntityTooLarge",
                f"The body is larger than {LARGEST_BODY_BYTES // 1024 // 1024} MiB.",
                status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            )
    return bytes(body)


def refusal_of_a_call(refusal: CallRefusedError) -> Response:
    """Answer in the form in which SageMaker refuses, which clients turn into their own errors."""
    return _response(_refused(refusal))


def _refused(refusal: CallRefusedError) -> Reply:
    return error(refusal.code, str(refusal), status=refusal.status, request_id=str(uuid.uuid4()))


def _response(reply: Reply) -> Response:
    headers = dict(reply.headers)
    if isinstance(reply.body, bytes):
        return Response(reply.body, status_code=reply.status, headers=_without_length(headers))
    return StreamingResponse(reply.body, status_code=reply.status, headers=headers)


def _without_length(headers: dict[str, str]) -> dict[str, str]:
    """Leave the length out: the response counts by itself."""
    return {name: value for name, value in headers.items() if name.lower() != "content-length"}
