"""The CloudFormation stack that the API belongs to."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from trainmaster_client.doctor.findings import AwsSaid, Finding, Seen, asked, skipped


def deployed_stack(seen: Seen) -> Mapping[str, Any] | Finding:
    """Describe the stack, as CloudFormation does; a Finding says why that cannot be had.

    The stack is found by the API's id, which begins the host of every way to a private API.
    """
    if seen.policy is None:
        return skipped("for admins")
    api_id = (urlsplit(seen.api_url).hostname or "").partition(".")[0].partition("-")[0]
    stack: Mapping[str, Any] | AwsSaid = asked(lambda: _described(seen, api_id))
    return skipped(f"CloudFormation does not say: {stack.why}") if isinstance(stack, AwsSaid) else stack


def parameters(stack: Mapping[str, Any]) -> dict[str, str]:
    return {
        parameter["ParameterKey"]: parameter.get("ParameterValue", "")
        for parameter in stack.get("Parameters", ())
    }


def outputs(stack: Mapping[str, Any]) -> dict[str, str]:
    return {output["OutputKey"]: output.get("OutputValue", "") for output in stack.get("Outputs", ())}


def _described(seen: Seen, api_id: str) -> Mapping[str, Any]:
    client = seen.client("cloudformation")
    resources = client.describe_stack_resources(PhysicalResourceId=api_id)["StackResources"]
    name = resources[0]["StackName"] if resources else ""
    (stack,) = client.describe_stacks(StackName=name)["Stacks"]
    description: Mapping[str, Any] = stack
    return description
