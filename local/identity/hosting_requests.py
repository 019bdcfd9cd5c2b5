"""Which IAM permissions AWS asks for when models and endpoints are made, seen and deleted.

Source: Service Authorization Reference, "Actions, resources, and condition keys for Amazon SageMaker".
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from local.identity.checks import Check, Checks, Operation

_OPERATION = re.compile("(?:Create|Describe|Delete)(Model|EndpointConfig|Endpoint)")
_LISTS = frozenset({"ListModels", "ListEndpointConfigs", "ListEndpoints"})
_KINDS: Mapping[str, str] = {
    "Model": "model",
    "EndpointConfig": "endpoint-config",
    "Endpoint": "endpoint",
}


def hosting(operation: Operation, tag_context: Mapping[str, str | Sequence[str]]) -> Checks:
    """Return the checks of an operation; ``tag_context`` has the request's tags as condition keys."""
    if operation.name in _LISTS:
        return [Check(action=f"sagemaker:{operation.name}", resource="*")]
    match = _OPERATION.fullmatch(operation.name)
    return None if match is None else _checks(operation, match[1], tag_context)


def _checks(
    operation: Operation, word: str, tag_context: Mapping[str, str | Sequence[str]]
) -> Iterator[Check]:
    resource = _arn(operation, word)
    yield Check(action=f"sagemaker:{operation.name}", resource=resource, context=tag_context)
    if operation.name == "CreateEndpoint":
        yield Check(action="sagemaker:CreateEndpoint", resource=_arn(operation, "EndpointConfig"))
    if operation.params.get("Tags"):
        tagging = {**tag_context, "sagemaker:TaggingAction": operation.name}
        yield Check(action="sagemaker:AddTags", resource=resource, context=tagging)
    if role := operation.params.get("ExecutionRoleArn"):
        passed_to = {"iam:PassedToService": "sagemaker.amazonaws.com"}
        yield Check(action="iam:PassRole", resource=role, context=passed_to)


def _arn(operation: Operation, word: str) -> str:
    """Return the resource's ARN; SageMaker writes names in its ARNs in lower case."""
    name = operation.params.get(f"{word}Name", "").lower()
    return operation.arn("sagemaker", f"{_KINDS[word]}/{name}")
