"""Reads which operation a request to AWS asks for, in boto3's names."""

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any
from urllib.parse import parse_qs

from botocore.utils import parse_timestamp
from moto.core.parse import EC2QueryParser, QueryParser
from moto.core.request import Request as MotoRequest
from moto.core.routing import get_service_router
from moto.core.utils import get_service_model
from werkzeug.exceptions import NotFound

from local.wire import AwsError, Request


class Protocol(StrEnum):
    JSON = "json"
    QUERY = "query"
    S3 = "rest-xml"


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsCall:
    service: str
    operation: str
    params: Mapping[str, Any]
    """Parameters as boto3 takes them; for S3 only the bucket, the key and the query."""
    region: str


TARGETS: Mapping[str, str] = {
    "AWSEvents": "events",
    "AmazonSQS": "sqs",
    "AmazonSSM": "ssm",
    "DynamoDBStreams_20120810": "dynamodbstreams",
    "DynamoDB_20120810": "dynamodb",
    "GraniteServiceVersion20100801": "cloudwatch",
    "Logs_20140328": "logs",
    "SageMaker": "sagemaker",
    "ServiceQuotasV20190624": "service-quotas",
    "TrentService": "kms",
}
"""Prefix of X-Amz-Target -> service. A test compares it with botocore's service models."""

SIGNING_NAMES: Mapping[str, str] = {
    "apigateway": "apigateway",
    "cloudformation": "cloudformation",
    "ec2": "ec2",
    "iam": "iam",
    "lambda": "lambda",
    "monitoring": "cloudwatch",
    "s3": "s3",
    "sns": "sns",
    "sqs": "sqs",
    "sts": "sts",
}
"""Name in the credential scope -> service, for those that have no X-Amz-Target. Likewise tested."""

_REST = frozenset({"apigateway", "lambda", "s3"})
"""Services whose operation is in the method and the path, not in the body."""


def protocol_of(request: Request, signing_name: str) -> Protocol:
    """Return the form in which this caller reads errors, also if the call itself makes no sense."""
    if "x-amz-target" in request.headers:
        return Protocol.JSON
    content_type = request.headers.get("content-type", "")
    if request.method == "POST" and content_type.startswith("application/x-www-form-urlencoded"):
        return Protocol.QUERY
    return Protocol.S3 if signing_name in {"s3", ""} else Protocol.JSON


def read_call(request: Request, *, signing_name: str, region: str) -> AwsCall:
    """Read service, operation and parameters. Raises AwsError for what the twin does not have."""
    if "x-amz-target" in request.headers:
        return _read_json(request, region)
    if signing_name in _REST:
        return _read_rest(request, SIGNING_NAMES[signing_name], region)
    service = SIGNING_NAMES.get(signing_name)
    if service is None or protocol_of(request, signing_name) is not Protocol.QUERY:
        raise unknown_service(f"{signing_name!r} ({request.method} {request.raw_path})")
    return _read_query(request, service, region)


def unknown_service(what: str) -> AwsError:
    known = ", ".join(sorted({*TARGETS.values(), *SIGNING_NAMES.values()}))
    return AwsError("NotImplemented", f"the twin has no service {what}; it has {known}", status=501)


def _read_json(request: Request, region: str) -> AwsCall:
    prefix, _, operation = request.headers["x-amz-target"].rpartition(".")
    service = TARGETS.get(prefix)
    if service is None:
        raise unknown_service(f"with the target {prefix!r}")
    try:
        params = json.loads(_plain_body(request) or b"{}")
    except ValueError as error:
        raise AwsError("SerializationException", f"the body is not JSON: {error}") from error
    if not isinstance(params, dict):
        raise AwsError("SerializationException", "the body is not a JSON object")
    return AwsCall(service=service, operation=operation, params=params, region=region)


def _read_query(request: Request, service: str, region: str) -> AwsCall:
    values = parse_qs(_plain_body(request).decode(), keep_blank_values=True)
    operation = values.get("Action", [""])[0]
    model = get_service_model(service)
    if operation not in model.operation_names:
        raise AwsError("InvalidAction", f"{service} has no operation {operation!r}")
    kind = EC2QueryParser if model.protocol == "ec2" else QueryParser
    parser = kind(model.operation_model(operation), timestamp_parser=_instant)
    try:
        params = parser.parse({"values": {name: given[0] for name, given in values.items()}})
    except ValueError as error:
        raise AwsError("MalformedInput", str(error)) from error
    return AwsCall(service=service, operation=operation, params=params, region=region)


def _instant(text: str) -> datetime:
    """Parse a time; one without a zone is UTC's."""
    parsed = parse_timestamp(text)
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def _read_rest(request: Request, service: str, region: str) -> AwsCall:
    try:
        operation, path = get_service_router(service).match(
            MotoRequest.from_primitives(
                request.method, f"http://127.0.0.1{_target(request)}", dict(request.headers)
            )
        )
    except NotFound as error:
        message = f"no operation of {service} is {request.method} {request.raw_path}"
        raise AwsError("MethodNotAllowed", message, status=405) from error
    query = {name: values[0] for name, values in parse_qs(request.query, keep_blank_values=True).items()}
    params = {name: value for name, value in query.items() if not name.startswith("X-Amz-")}
    return AwsCall(service=service, operation=operation.name, params={**path, **params}, region=region)


def _target(request: Request) -> str:
    return f"{request.raw_path}?{request.query}" if request.query else request.raw_path


def _plain_body(request: Request) -> bytes:
    """Return the body uncompressed: botocore compresses large ones of some operations (PutMetricData)."""
    if request.headers.get("content-encoding") == "gzip":
        return gzip.decompress(request.body)
    return request.body
