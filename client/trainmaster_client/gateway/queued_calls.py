"""Answer SageMaker calls at the gateway: by the queue's hooks, or by passing them on."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from botocore.hooks import HierarchicalEmitter

from trainmaster_client.api import LONGEST_KEY, ApiClient, Document
from trainmaster_client.errors import ApiUnreachableError, GatewayRefusedError, TrainmasterClientError
from trainmaster_client.errors.troubles import Trouble
from trainmaster_client.gateway.credential_chain import RenewedCredentials
from trainmaster_client.gateway.json_protocol import (
    CallRefusedError,
    Reply,
    error,
    hooked,
    operation_of,
    require_name,
)
from trainmaster_client.gateway.passed_calls import SageMakerEndpoint
from trainmaster_client.hooks.botocore_events import refusal
from trainmaster_client.hooks.hooked_events import KEY
from trainmaster_client.hooks.training_job_calls import QueueHooks
from trainmaster_client.http.answers import Answer, trouble_of
from trainmaster_client.http.expiry import EXPIRED_CODES

INVOCATION_HEADER = "amz-sdk-invocation-id"
"""Header with the SDKs' id of a call. Source: SDKs and Tools Reference Guide, Retry behavior."""


class RenewingApi(ApiClient):
    """An API client that walks the chain for other credentials once they expired, and calls again, once."""

    credentials: RenewedCredentials

    def _call(self, *arguments: Any, **options: Any) -> Document:  # noqa: ANN401  as they are
        signed_with = self.credentials.get_frozen_credentials()
        try:
            return super()._call(*arguments, **options)
        except GatewayRefusedError as refused:
            if refused.trouble is not Trouble.EXPIRED_CREDENTIALS:
                raise
        self.credentials.renew(refused=signed_with)
        return super()._call(*arguments, **options)

    def passed_on(self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        """Return the API's answer, refusals included. Raises ApiUnreachableError and CredentialsError.

        Args:
            method: The HTTP method.
            target: Path and query, percent-encoded.
            body: The body; None if it has none.
            headers: Headers beside those that every call has.
        """
        signed_with = self.credentials.get_frozen_credentials()
        answer = self._transport.send(method, target, body, headers)
        if trouble_of(answer, now=datetime.now(UTC)) is not Trouble.EXPIRED_CREDENTIALS:
            return answer
        self.credentials.renew(refused=signed_with)
        return self._transport.send(method, target, body, headers)


@dataclass(frozen=True, slots=True, kw_only=True)
class SageMakerCall:
    operation: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes
    request_id: str


class QueuedCalls:
    """Answers in SageMaker's place. Threads may share it.

    The hooks are those of ``install()``, called by the events that a client of boto3 calls them by.
    """

    def __init__(
        self,
        hooks: QueueHooks,
        endpoint: SageMakerEndpoint,
        credentials: RenewedCredentials,
    ) -> None:
        self._hooks = hooks
        self._endpoint = endpoint
        self._credentials = credentials
        self._events = HierarchicalEmitter()
        hooks.register(self._events)

    def answer(self, headers: Mapping[str, str], body: bytes) -> tuple[str, Reply]:
        """Return the operation's name, empty if there is none, and the answer, which may be a refusal."""
        request_id, operation = str(uuid.uuid4()), ""
        try:
            operation = operation_of(headers.get("x-amz-target", ""))
            require_name(operation, body)
            call = SageMakerCall(operation=operation, headers=headers, body=body, request_id=request_id)
            return operation, self._renewed(call)
        except CallRefusedError as refused:
            status = refused.status
            return operation, error(refused.code, str(refused), status=status, request_id=request_id)
        except TrainmasterClientError as trouble:
            return operation, hooked(refusal(trouble)[1], request_id=request_id)
        except ClientError as failure:
            return operation, _repeated(failure, request_id)
        except BotoCoreError as trouble:  # of a connection
            unreachable = ApiUnreachableError(self._endpoint.url, why=f"{trouble}.")
            return operation, hooked(refusal(unreachable)[1], request_id=request_id)

    def _renewed(self, call: SageMakerCall) -> Reply:
        """Answer, and once more with new credentials if boto3's clients in the hooks find theirs expired."""
        signed_with = self._credentials.get_frozen_credentials()
        try:
            return self._answered(call)
        except ClientError as failure:
            if failure.response["Error"]["Code"] not in EXPIRED_CODES:
                raise
        self._credentials.renew(refused=signed_with)
        return self._answered(call)

    def _answered(self, call: SageMakerCall) -> Reply:
        sent: dict[str, Any] = {"url": f"{self._endpoint.url}/", "body": call.body}
        parsed = self._hook(call, sent)
        if parsed is not None:
            return hooked(parsed, request_id=call.request_id)
        assert call.operation != "CreateTrainingJob", "a training job never bypasses the queue"
        return self._endpoint.send(call.headers, sent["body"])

    def _hook(self, call: SageMakerCall, sent: dict[str, Any]) -> Mapping[str, Any] | None:
        """Call the hooks; None if the call is SageMaker's, with the body that ``sent`` has now."""
        _, response = self._events.emit_until_response(
            f"before-call.sagemaker.{call.operation}",
            model=_Operation(name=call.operation),
            params=sent,
            context={"client_region": self._hooks.api.region, KEY: _key_of(call.headers)},
        )
        return None if response is None else response[1]


def _key_of(headers: Mapping[str, str]) -> str:
    """Return the SDKs' id of a call, which they repeat with each try.

    "" if there is none that can be a key.
    """
    key = headers.get(INVOCATION_HEADER, "")
    return key if len(key) <= LONGEST_KEY and key.isascii() and key.isprintable() else ""


@dataclass(frozen=True, slots=True)
class _Operation:
    """All that the hooks read of botocore's model of an operation."""

    name: str


def _repeated(refused: ClientError, request_id: str) -> Reply:
    """Repeat AWS's own refusal of a call that a hook made."""
    status = int(refused.response["ResponseMetadata"].get("HTTPStatusCode") or HTTPStatus.BAD_REQUEST)
    details = refused.response["Error"]
    return error(details["Code"], details["Message"], status=status, request_id=request_id)
