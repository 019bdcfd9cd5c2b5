"""What a call of SageMaker comes to at the gateway: answered by the queue's hooks, or passed on."""

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
"""Source: SDKs and Tools Reference Guide, Retry behavior."""


class RenewingApi(ApiClient):
    """Where the credentials have expired, the chain is walked for others, and the call made again, once."""

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
        """What the API says, refusals included. Raises ApiUnreachableError and CredentialsError.

        Args:
            method: Of the call.
            target: Path and query, percent-encoded.
            body: None: it has none.
            headers: Beside those that every call has.
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
        """The operation's name, empty where there is none, and the answer. Refusals are answers, too."""
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
        except ClientError as said:
            return operation, _repeated(said, request_id)
        except BotoCoreError as trouble:  # of a connection
            unreachable = ApiUnreachableError(self._endpoint.url, why=f"{trouble}.")
            return operation, hooked(refusal(unreachable)[1], request_id=request_id)

    def _renewed(self, call: SageMakerCall) -> Reply:
        """Hooks describe attempts with clients of boto3, which say by their own error that keys expired."""
        signed_with = self._credentials.get_frozen_credentials()
        try:
            return self._answered(call)
        except ClientError as said:
            if said.response["Error"]["Code"] not in EXPIRED_CODES:
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
        """Ask the hooks; None: the call is SageMaker's, with the body that ``sent`` has now."""
        _, found = self._events.emit_until_response(
            f"before-call.sagemaker.{call.operation}",
            model=_Operation(name=call.operation),
            params=sent,
            context={"client_region": self._hooks.api.region, KEY: _key_of(call.headers)},
        )
        return None if found is None else found[1]


def _key_of(headers: Mapping[str, str]) -> str:
    """The SDKs' id of a call, which they repeat with each try; "" where there is none that is a key."""
    found = headers.get(INVOCATION_HEADER, "")
    return found if len(found) <= LONGEST_KEY and found.isascii() and found.isprintable() else ""


@dataclass(frozen=True, slots=True)
class _Operation:
    """All that the hooks read of botocore's model of an operation."""

    name: str


def _repeated(said: ClientError, request_id: str) -> Reply:
    """AWS's own refusal of what a hook asked of it."""
    status = int(said.response["ResponseMetadata"].get("HTTPStatusCode") or HTTPStatus.BAD_REQUEST)
    found = said.response["Error"]
    return error(found["Code"], found["Message"], status=status, request_id=request_id)
