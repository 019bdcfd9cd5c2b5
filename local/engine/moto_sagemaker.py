"""What of SageMaker moto answers: models, endpoints and what else it keeps, never what has to run."""

import re
from collections.abc import Mapping

from botocore.model import StructureShape
from moto.core.utils import camelcase_to_underscores, get_service_model
from moto.sagemaker.models import FakeEndpointConfig, sagemaker_backends
from moto.sagemaker.responses import SageMakerResponse

from local.engine.calls import AwsCall
from local.validation import checked
from local.wire import AwsError

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


def accept_all_instance_types() -> None:
    """Moto knows those of some years ago; ``check`` has asked the service model."""
    FakeEndpointConfig.validate_instance_type = _accept


def _check_name(call: AwsCall, account_id: str) -> None:
    """Moto replaces what has the name. The words: SageMaker Python SDK 2.257, session.py, create_model."""
    if call.operation not in _NAMES:
        return
    member, table, kind = _NAMES[call.operation]
    name = call.params[member]
    if name in getattr(sagemaker_backends[account_id][call.region], table):
        arn = f"arn:aws:sagemaker:{call.region}:{account_id}:{kind}/{name}"
        words = kind.replace("-config", " configuration")
        raise AwsError("ValidationException", f'Cannot create already existing {words} "{arn}".')


def _accept(_config: FakeEndpointConfig, _instance_type: str) -> None: ...
