"""Calls of a REST API with IAM authorization: the signature is verified in full before the API sees them."""

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias
from urllib.parse import parse_qs

from local.denials import DENIED
from local.doors.callers import Callers
from local.doors.context import DoorContext
from local.identity.sigv4 import Scope, read_claim, verify
from local.journal import CallEntry
from local.wire import AwsError, Principal, Request, Response

logger = logging.getLogger(__name__)

RestHandler: TypeAlias = Callable[[Request, Principal], Response]

_SERVICE = "execute-api"
_FRESH = timedelta(minutes=5)
"""API Gateway refuses what was signed longer ago, or later than that from now."""
_SERVER_FAULTS = {"InternalFailure": 500, "InternalServerError": 500, "ServiceUnavailable": 503}


@dataclass(frozen=True, slots=True, kw_only=True)
class RestApi:
    prefix: str
    """Path up to and including the stage."""
    handler: RestHandler
    """Decides whether the caller may; only the API knows its resource policy."""

    def path(self, request: Request) -> str:
        return request.raw_path.removeprefix(self.prefix) or "/"


class RestDoor:
    def __init__(self, around: DoorContext) -> None:
        self._around = around
        self._callers = Callers(around.identities, around.engine)

    def answer(self, api: RestApi, request: Request) -> Response:
        principal: Principal | None = None
        code: str | None = None
        label = f"{request.method} {api.path(request)}"
        try:
            principal = self._authenticated(request)
            self._fail_on_demand(label, principal)
            response = _handled(api, request, principal)
        except AwsError as error:
            code = error.code
            response = _refusal(error)
        self._around.journal.call(
            CallEntry(
                principal=principal,
                service=_SERVICE,
                operation=label,
                params=_params(request),
                status=response.status,
                error_code=code,
            )
        )
        return response

    def _authenticated(self, request: Request) -> Principal:
        claim = read_claim(request)
        if claim is None or not claim.signature:
            raise AwsError("MissingAuthenticationTokenException", "Missing Authentication Token", status=403)
        credentials = self._callers.credentials_of(claim.access_key_id)
        if credentials is None:
            message = "The security token included in the request is invalid."
            raise AwsError("UnrecognizedClientException", message, status=403)
        clocks = (self._around.clock.now(), datetime.now(UTC))
        scope = Scope(service=_SERVICE, region=self._around.engine.region, fresh=_FRESH)
        verify(request, claim, credentials, scope=scope, now=clocks)
        return credentials.principal

    def _fail_on_demand(self, label: str, principal: Principal) -> None:
        denials, now = self._around.faults.denials, self._around.clock.now()
        if (words := denials.denied(label, principal.arn, {}, now=now)) is not None:
            raise AwsError(DENIED, words, status=403)
        if (code := self._around.faults.take(label, principal.arn)) is not None:
            raise AwsError(code, f"{code} on demand", status=_SERVER_FAULTS.get(code, 400))


def _handled(api: RestApi, request: Request, principal: Principal) -> Response:
    try:
        return api.handler(request, principal)
    except AwsError:
        raise
    except Exception:  # the bulkhead around the handler, as API Gateway has one around an integration
        logger.exception("a REST handler failed")
        return _json_response(500, "Internal server error")


def _refusal(error: AwsError) -> Response:
    response = _json_response(error.status, error.message)
    return Response(
        status=response.status,
        body=response.body,
        headers={**response.headers, "x-amzn-ErrorType": error.code},
    )


def _json_response(status: int, message: str) -> Response:
    body = json.dumps({"message": message}).encode()
    return Response(status=status, body=body, headers={"Content-Type": "application/json"})


def _params(request: Request) -> dict[str, Any]:
    query = {name: values[0] for name, values in parse_qs(request.query, keep_blank_values=True).items()}
    return {"query": query, "body": _body(request.body)}


def _body(body: bytes) -> Any:  # noqa: ANN401  any JSON value
    """Read the body for the journal, which shortens long texts; what is not JSON is only counted."""
    if not body:
        return None
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body
