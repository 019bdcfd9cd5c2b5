"""Call a JSON service of AWS through botocore, but without its request pipeline, which costs too much.

Kept from botocore: configuration, endpoint, credentials, signer, connections, retries with their quota,
errors and three of its events. Left out: validation of parameters that our own code builds, endpoint rules,
the walk over the service model of each request and answer. So answers are as the wire has them: bytes are
base64 text, instants are numbers.
"""

import json
import zlib
from base64 import b64encode
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

from botocore.awsrequest import AWSPreparedRequest
from botocore.compat import get_current_datetime
from botocore.exceptions import NoCredentialsError
from botocore.parsers import create_parser

from trainmaster.adapters.lean_connections import use_lean_connections
from trainmaster.adapters.post_signer import PostSigner

_OK = 200
_FIRST_ERROR = 300


class LeanClient:
    """Makes lean the operations whose answers are used as the wire has them; others stay the client's."""

    def __init__(self, client: Any, *, only: Collection[str] = ()) -> None:
        """``only`` names the methods to make lean; if it is empty, all of them are."""
        self._client = client
        self._only = frozenset(only)
        self._endpoint = client._endpoint  # noqa: SLF001  botocore is pinned; a test holds both to the same answers
        self._keys = client._request_signer  # noqa: SLF001  as above
        self._parser = create_parser("json")
        meta = client.meta
        self._events, self._url = meta.events, f"{meta.endpoint_url}/"
        metadata = meta.service_model.metadata
        self._service = meta.service_model.service_id.hyphenize()
        self._target = metadata["targetPrefix"]
        self._headers = {
            "Content-Type": f"application/x-amz-json-{metadata['jsonVersion']}",
            "User-Agent": meta.config.user_agent,
        }
        names = {"service": self._keys.signing_name, "region": self._keys.region_name}
        self._signer = PostSigner(self._url, **names)
        self._judge = self._endpoint._needs_retry  # noqa: SLF001  as above
        use_lean_connections(self._endpoint.http_session)

    def __getattr__(self, method: str) -> Any:
        operation = self._client.meta.method_to_api_mapping.get(method)
        if operation is None or (self._only and method not in self._only):
            return getattr(self._client, method)
        call = partial(self._call, operation)
        self.__dict__[method] = call
        return call

    def _call(self, operation: str, **params: Any) -> dict[str, Any]:
        model = self._client.meta.service_model.operation_model(operation)
        body = _JSON.encode(params).encode()
        context: dict[str, Any] = {"client_config": self._client.meta.config}
        headers = {**self._headers, "X-Amz-Target": f"{self._target}.{operation}"}
        self._emit("before-call", operation, model=model, params={"headers": headers}, context=context)
        http, parsed = self._send_with_retries(model, headers, body, context)
        self._emit("after-call", operation, http_response=http, parsed=parsed, model=model, context=context)
        if http.status_code >= _FIRST_ERROR:
            raise self._client.exceptions.from_code(parsed["Error"].get("Code"))(parsed, operation)
        return parsed

    def _send_with_retries(
        self, model: Any, headers: Mapping[str, str], body: bytes, context: dict[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        """Send the request with as many tries as botocore makes and its waits in between."""
        attempts = 1
        while True:
            answer, error = self._send_once(model, headers, body)
            if error is None and answer is not None and answer[0].status_code == _OK and _is_whole(answer[0]):
                return answer
            again = self._judge(attempts, model, {"context": context}, answer, error)
            if not again and error is not None:
                raise error
            if not again and answer is not None:
                return answer
            attempts += 1

    def _send_once(
        self, model: Any, headers: Mapping[str, str], body: bytes
    ) -> tuple[tuple[Any, dict[str, Any]] | None, Exception | None]:
        """Send the request once; an exception is returned, as botocore's retry rules judge it."""
        request = self._signed(headers, body)
        try:
            http = self._emit("before-send", model.name, request=request)
            if http is None:
                http = self._endpoint.http_session.send(request)
        except Exception as error:  # noqa: BLE001  as botocore's endpoint does; it is raised if nobody retries
            return None, error
        return (http, self._parsed(model, http)), None

    def _signed(self, headers: Mapping[str, str], body: bytes) -> AWSPreparedRequest:
        """Sign with the current keys on every try, as botocore renews them."""
        credentials = self._keys._credentials  # noqa: SLF001  as above
        if credentials is None:
            raise NoCredentialsError
        keys = credentials.get_frozen_credentials()
        signed = self._signer.signed(headers, body, keys, at=get_current_datetime())
        whole: Any = signed | {"Content-Length": str(len(body)), "Accept-Encoding": "identity"}
        return AWSPreparedRequest("POST", self._url, whole, body, stream_output=False)

    def _parsed(self, model: Any, http: Any) -> dict[str, Any]:
        content = http.content
        if http.status_code == _OK:
            parsed: dict[str, Any] = json.loads(content) if content else {}
            return parsed
        raw = {"status_code": http.status_code, "headers": http.headers, "body": content}
        failed: dict[str, Any] = self._parser.parse(raw, model.output_shape)
        shape = model.service_model.shape_for_error_code(failed.get("Error", {}).get("Code"))
        return failed | self._parser.parse(raw, shape) if shape is not None else failed

    def _emit(self, event: str, operation: str, **details: Any) -> Any:
        """Emit one of botocore's events, and return the response of the first handler that has one."""
        response = self._events.emit_until_response(f"{event}.{self._service}.{operation}", **details)
        return response[1]


def _text(content: object) -> str:
    if isinstance(content, bytes | bytearray):
        return b64encode(content).decode()
    raise TypeError(f"{type(content).__name__} has no form in JSON")


_JSON = json.JSONEncoder(default=_text, separators=(",", ":"))


def _is_whole(http: Any) -> bool:
    """Check the answer against the checksum that DynamoDB sends; botocore's rules judge one that differs."""
    expected = http.headers.get("x-amz-crc32")
    return expected is None or int(expected) == zlib.crc32(http.content)
