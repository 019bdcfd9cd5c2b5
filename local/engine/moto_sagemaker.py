"""Selects the SageMaker calls that moto answers: models, endpoints and records, never what has to run."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from botocore.model import StructureShape
from moto.core.utils import camelcase_to_underscores, get_service_model
from moto.s3.models import s3_backends
from moto.sagemaker.models import FakeEndpointConfig, sagemaker_backends
from moto.sagemaker.responses import SageMakerResponse

from local.engine.calls import AwsCall
from local.validation import checked
from local.wire import AwsError, Response

_WOULD_PRETEND = re.compile("Job|Pipeline|Cluster|Search")
"""Moto says of jobs, pipelines and clusters that they ran; and its search knows none of the training jobs."""
_TAGS_OF_TRAINING = ":training-job/"
_NAMES: Mapping[str, tuple[str, str, str]] = {
    "CreateModel": ("ModelName", "_models", "model"),
    "CreateEndpointConfig": ("EndpointConfigName", "endpoint_configs", "endpoint-config"),
    "CreateEndpoint": ("EndpointName", "endpoints", "endpoint"),
}
"""Operation -> member with the name, moto's table of those that are there, what they are called in ARNs."""


def check(call: AwsCall, account_id: str) -> None:
    """Raises AwsError for what moto must not answer, or would take although SageMaker refuses it."""
    has_it = hasattr(SageMakerResponse, camelcase_to_underscores(call.operation))
    is_of_training = _TAGS_OF_TRAINING in str(call.params.get("ResourceArn"))
    if not has_it or is_of_training or _WOULD_PRETEND.search(call.operation):
        raise AwsError("UnknownOperationException", f"The twin does not emulate {call.operation}.")
    shape = get_service_model("sagemaker").operation_model(call.operation).input_shape
    if isinstance(shape, StructureShape):
        checked(shape, call.params)
    _check_name(call, account_id)
    _check_model_data(call, account_id)


def without_empty(response: Response) -> Response:
    """Drop empty members of an answer: moto sends ``"VpcConfig": {}``, on which the SDK v3 fails."""
    members = {name: value for name, value in json.loads(response.body).items() if value not in ({}, [])}
    return replace(response, body=json.dumps(members).encode())


def accept_all_instance_types() -> None:
    """Let moto accept all types: it knows those of some years ago, and ``check`` asked the service model."""
    FakeEndpointConfig.validate_instance_type = _accept


def _check_name(call: AwsCall, account_id: str) -> None:
    """Refuse an existing name, as moto would replace the model or endpoint.

    The words: SageMaker Python SDK 2.257, session.py, create_model.
    """
    if call.operation not in _NAMES:
        return
    member, table, kind = _NAMES[call.operation]
    name = call.params[member]
    if name in getattr(sagemaker_backends[account_id][call.region], table):
        arn = f"arn:aws:sagemaker:{call.region}:{account_id}:{kind}/{name}"
        words = kind.replace("-config", " configuration")
        raise AwsError("ValidationException", f'Cannot create already existing {words} "{arn}".')


def _check_model_data(call: AwsCall, account_id: str) -> None:
    """Refuse model data that does not exist, as moto does not look.

    The words: aws/amazon-sagemaker-examples, issue 2264 on GitHub.
    """
    if call.operation != "CreateModel":
        return
    buckets = s3_backends[account_id]["aws"].buckets
    for uri in _model_data(call.params):
        bucket, _, key = uri.removeprefix("s3://").partition("/")
        if bucket not in buckets or not any(existing.startswith(key) for existing in buckets[bucket].keys):
            raise AwsError("ValidationException", f"Could not find model data at {uri}.")


def _model_data(params: Mapping[str, Any]) -> Iterator[str]:
    """Yield URIs of objects or, for uncompressed models, of what their keys begin with."""
    for container in (params.get("PrimaryContainer", {}), *params.get("Containers", ())):
        source = container.get("ModelDataSource", {}).get("S3DataSource", {})
        yield from filter(None, (container.get("ModelDataUrl"), source.get("S3Uri")))


def _accept(_config: FakeEndpointConfig, _instance_type: str) -> None: ...
