"""An answer of one of the twin's own services as the caller's protocol writes it."""

from collections.abc import Mapping
from secrets import token_hex
from typing import Any

from moto.core.serialize import SerializationContext, get_serializer_class
from moto.core.utils import get_service_model

from local.engine.calls import AwsCall
from local.wire import Request, Response

_CONTENT_TYPES = {"json": "application/x-amz-json-1.0", "query": "text/xml", "ec2": "text/xml"}


def serialized(call: AwsCall, answer: Mapping[str, Any], request: Request) -> Response:
    """Serialize as JSON for callers that name a target, else as XML of the query protocol."""
    model = get_service_model(call.service)
    spoken = "ec2" if model.protocol == "ec2" else "query"
    protocol = "json" if "x-amz-target" in request.headers else spoken
    operation = model.operation_model(call.operation)
    request_id = token_hex(16)
    serializer = get_serializer_class(call.service, protocol)(operation, SerializationContext(request_id))
    written = serializer.serialize(answer)
    body = written["body"]
    return Response(
        status=written["status_code"],
        body=body if isinstance(body, bytes) else body.encode(),
        headers={"Content-Type": _CONTENT_TYPES[protocol], "x-amzn-RequestId": request_id},
    )
