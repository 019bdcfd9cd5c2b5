"""Calls of AWS services: who calls, may he, does it have to fail, who answers; then journal and listeners."""

import base64
import json
import logging
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from secrets import token_hex
from typing import Any, TypeAlias

from local.denials import DENIED
from local.doors import sts
from local.doors.callers import Callers
from local.doors.context import DoorContext
from local.engine.answers import serialized
from local.engine.calls import SIGNING_NAMES, AwsCall, Protocol, protocol_of, read_call
from local.engine.dynamodb.transactions import REASON_CODES, cancelled_on_demand
from local.engine.errors import QUERY_COMPATIBLE, error_response, status_of
from local.identity.checks import Operation
from local.identity.identities import Credentials
from local.identity.sigv4 import Claim, Scope, check_token, read_claim, verify
from local.journal import CallEntry
from local.wire import AwsError, Principal, Request, Response

logger = logging.getLogger(__name__)

ServiceHandler: TypeAlias = Callable[[str, dict[str, Any], Principal], dict[str, Any]]
"""(operation, parameters, caller) -> result."""
Owns: TypeAlias = Callable[[str, Mapping[str, Any]], bool]
"""(operation, parameters) -> whether it is the handler's; the engine is asked for the others."""
Listener: TypeAlias = Callable[[dict[str, Any]], None]
"""Is told the parameters of a call that succeeded."""

_FAILED = 400
_XML_CODE = re.compile(rb"<Code>([^<]*)</Code>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A service that the twin answers itself, in whole or in part."""

    handler: ServiceHandler
    owns: Owns


@dataclass(slots=True)
class _Entry:
    """Facts for the journal, filled in as they become known."""

    principal: Principal | None = None
    call: AwsCall | None = None


class AwsDoor:
    def __init__(self, around: DoorContext) -> None:
        self._around = around
        self._callers = Callers(around.identities, around.engine)
        self.services: dict[str, Service] = {}
        self.listeners: dict[tuple[str, str], list[Listener]] = {}

    def answer(self, request: Request) -> Response:
        entry, claim = _Entry(), read_claim(request)
        code: str | None
        try:
            response = self._guarded(request, claim, entry)
            code = _error_code(response)
        except AwsError as error:
            protocol = protocol_of(request, claim.service if claim else "")
            response = error_response(error, protocol, entry.call.service if entry.call else None)
            code = error.code
        call = entry.call
        self._around.journal.call(
            CallEntry(
                principal=entry.principal,
                service=call.service if call else None,
                operation=call.operation if call else None,
                params=call.params if call else {},
                status=response.status,
                error_code=code,
            )
        )
        if call is not None and response.status < _FAILED:
            self._tell(call)
        return response

    def _guarded(self, request: Request, claim: Claim | None, entry: _Entry) -> Response:
        try:
            return self._serve(request, claim, entry)
        except AwsError:
            raise
        except Exception as error:  # the bulkhead around whoever answers: the caller gets an answer
            logger.exception("a call failed")
            raise AwsError("InternalFailure", f"{type(error).__name__}: {error}", status=500) from error

    def _serve(self, request: Request, claim: Claim | None, entry: _Entry) -> Response:
        if claim is None:
            code = "AccessDenied" if protocol_of(request, "") is Protocol.S3 else "MissingAuthenticationToken"
            raise AwsError(code, "Request is missing Authentication Token", status=403)
        credentials = self._known_credentials(request, claim, entry)
        call = entry.call = read_call(request, signing_name=claim.service, region=claim.region)
        if call.service == "sts":
            self._verify(request, claim, credentials)
        principal = entry.principal = credentials.principal
        self._around.authorizer.check_call(principal, _operation(call, principal))
        self._check_denials(call, principal)
        if (fault := self._around.faults.take(call.operation, principal.arn)) is not None:
            raise _on_demand(call, fault)
        service = self.services.get(call.service)
        if service is not None and service.owns(call.operation, call.params):
            result = service.handler(call.operation, dict(call.params), principal)
            is_query = protocol_of(request, claim.service) is Protocol.QUERY
            return serialized(call, result, request) if is_query else json_response(result, request)
        if call.service == "sts":
            if call.operation == "AssumeRole":
                self._around.authorizer.check_trust(principal, _operation(call, principal))
            return sts.answer(call, principal, self._around.identities, self._around.clock.now())
        return self._around.engine.call(call, request)

    def _check_denials(self, call: AwsCall, principal: Principal) -> None:
        denials, now = self._around.faults.denials, self._around.clock.now()
        if (words := denials.denied(call.operation, principal.arn, call.params, now=now)) is not None:
            raise AwsError(DENIED, words, status=status_of(call.service, DENIED))

    def _known_credentials(self, request: Request, claim: Claim, entry: _Entry) -> Credentials:
        """Find the keys that the caller claims; raises AwsError for a stranger, whatever the call says.

        A stranger's call is read for the journal alone: one that makes no sense is a 403, too.
        """
        credentials = self._callers.credentials_of(claim.access_key_id)
        if credentials is not None and check_token(claim, credentials):
            return credentials
        if "content-encoding" not in request.headers:  # a stranger's body is not unpacked
            with suppress(Exception):
                entry.call = read_call(request, signing_name=claim.service, region=claim.region)
        service = SIGNING_NAMES.get(claim.service, claim.service)
        code = _UNKNOWN_KEY.get(service, "UnrecognizedClientException")
        raise AwsError(code, "The security token included in the request is invalid.", status=403)

    def _verify(self, request: Request, claim: Claim, credentials: Credentials) -> None:
        """Verify the signature of a call to STS; other services trust the key's id, which is faster."""
        clocks = (self._around.clock.now(), datetime.now(UTC))
        try:
            verify(request, claim, credentials, scope=Scope(service="sts", region=claim.region), now=clocks)
        except AwsError as error:
            raise AwsError("SignatureDoesNotMatch", error.message, status=403) from error

    def _tell(self, call: AwsCall) -> None:
        for listener in self.listeners.get((call.service, call.operation), ()):
            try:
                listener(dict(call.params))
            except Exception:  # the bulkhead around listeners: the call itself has succeeded
                logger.exception("a listener failed")


_UNKNOWN_KEY: Mapping[str, str] = {
    "s3": "InvalidAccessKeyId",
    **dict.fromkeys(("iam", "sns", "sts", *QUERY_COMPATIBLE), "InvalidClientTokenId"),
}


def _operation(call: AwsCall, principal: Principal) -> Operation:
    return Operation(
        service=call.service,
        name=call.operation,
        params=call.params,
        region=call.region,
        account_id=principal.account_id,
    )


def _on_demand(call: AwsCall, code: str) -> AwsError:
    if call.operation == "TransactWriteItems" and code in REASON_CODES:
        return cancelled_on_demand(code, call.params)
    return AwsError(code, f"{code} on demand", status=status_of(call.service, code))


def _error_code(response: Response) -> str | None:
    if response.status < _FAILED:
        return None
    if match := _XML_CODE.search(response.body):
        return match[1].decode()
    try:
        return str(json.loads(response.body)["__type"]).rpartition("#")[2]
    except (ValueError, KeyError, TypeError):
        return str(response.status)


def json_response(result: Mapping[str, Any], request: Request) -> Response:
    content_type = request.headers.get("content-type", "application/x-amz-json-1.1")
    body = json.dumps(result, default=_json_value).encode()
    return Response(
        status=200, body=body, headers={"Content-Type": content_type, "x-amzn-RequestId": token_hex(16)}
    )


def _json_value(value: object) -> object:
    """Convert a value as JSON 1.1 has it: times as seconds since the epoch, bytes as base64."""
    match value:
        case datetime():
            return value.timestamp()
        case Decimal():
            return float(value)
        case bytes():
            return base64.b64encode(value).decode()
        case _:
            raise TypeError(f"a result of a service holds {value!r}")
