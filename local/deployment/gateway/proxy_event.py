"""The event of a Lambda proxy integration and the answer that is expected of the function.

Source: API Gateway Developer Guide, "Set up Lambda proxy integrations in API Gateway" (format 1.0).
"""

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, unquote

from local.deployment.gateway.routes import Route
from local.wire import Principal, Request, Response


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request that was let through."""

    request: Request
    path: str
    """Behind the stage, as sent."""
    route: Route
    principal: Principal
    api_id: str
    stage: str
    request_id: str
    vpc_endpoint_id: str
    at: datetime


def proxy_event(call: Call) -> dict[str, Any]:
    request = call.request
    query = parse_qsl(request.query, keep_blank_values=True)
    return {
        "resource": call.route.resource,
        "path": unquote(call.path),
        "httpMethod": request.method,
        "headers": dict(request.headers),
        "multiValueHeaders": {name: [value] for name, value in request.headers.items()},
        "queryStringParameters": dict(query) or None,
        "multiValueQueryStringParameters": _grouped(query) or None,
        "pathParameters": dict(call.route.variables) or None,
        "stageVariables": None,
        "requestContext": _context(call),
        # No binary media types are declared, so the body is text, whatever it was.
        "body": request.body.decode(errors="replace") if request.body else None,
        "isBase64Encoded": False,
    }


def _grouped(query: list[tuple[str, str]]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for name, value in query:
        groups.setdefault(name, []).append(value)
    return groups


def _context(call: Call) -> dict[str, Any]:
    return {
        "accountId": call.principal.account_id,
        "apiId": call.api_id,
        "httpMethod": call.request.method,
        "identity": _identity(call),
        "path": f"/{call.stage}{unquote(call.path)}",
        "protocol": "HTTP/1.1",
        "requestId": call.request_id,
        "extendedRequestId": call.request_id,
        "requestTime": call.at.strftime("%d/%b/%Y:%H:%M:%S +0000"),
        "requestTimeEpoch": int(call.at.timestamp() * 1000),
        "resourceId": "twin",
        "resourcePath": call.route.resource,
        "stage": call.stage,
        "domainName": call.request.headers.get("host", ""),
    }


def _identity(call: Call) -> dict[str, Any]:
    principal = call.principal
    unused = ("apiKey", "cognitoAuthenticationProvider", "cognitoIdentityId", "cognitoIdentityPoolId")
    return dict.fromkeys(unused) | {
        "accessKey": principal.access_key_id,
        "accountId": principal.account_id,
        "caller": principal.access_key_id,
        "sourceIp": "127.0.0.1",
        "user": principal.access_key_id,
        "userAgent": call.request.headers.get("user-agent"),
        "userArn": principal.arn,
        "vpceId": call.vpc_endpoint_id,
    }


def response_of(payload: bytes) -> Response | None:
    """Answer what the function wants the caller to get; None when its answer has the wrong form."""
    try:
        answer = json.loads(payload)
        return _response(answer)
    except (ValueError, TypeError, KeyError, AttributeError, binascii.Error):
        return None


def _response(answer: Mapping[str, Any]) -> Response:
    body = answer.get("body") or ""
    encoded = base64.b64decode(body, validate=True) if answer.get("isBase64Encoded") else body.encode()
    headers = {name.lower(): _header(value) for name, value in (answer.get("headers") or {}).items()}
    for name, values in (answer.get("multiValueHeaders") or {}).items():
        headers[name.lower()] = ",".join(_header(value) for value in values)
    headers.setdefault("content-type", "application/json")
    return Response(status=int(answer["statusCode"]), body=encoded, headers=headers)


def _header(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
