"""Roles and what they may do."""

from typing import Any

from local.deployment.deployment_errors import TemplateError
from local.deployment.managed_policies import MANAGED_POLICIES
from local.deployment.resources.kinds import Kind, Made, Properties, Site, names


def _role(site: Site, logical_id: str, properties: Properties) -> Made:
    name = properties.get("RoleName", site.name(logical_id))
    arn = f"arn:aws:iam::{site.account_id}:role{properties.get('Path', '/')}{name}"
    try:
        site.roles.add_role(arn, _policies(logical_id, properties))
    except ValueError as error:
        raise TemplateError(logical_id, str(error)) from error
    site.wiring.trusts[arn] = properties["AssumeRolePolicyDocument"]
    return Made(ref=name, attributes={"Arn": arn})


def _policies(logical_id: str, properties: Properties) -> list[dict[str, Any]]:
    inline = [policy["PolicyDocument"] for policy in properties.get("Policies", [])]
    managed = properties.get("ManagedPolicyArns", [])
    for arn in managed:
        if arn not in MANAGED_POLICIES:
            raise TemplateError(logical_id, f"the twin does not know managed policy {arn}")
    return inline + [dict(MANAGED_POLICIES[arn]) for arn in managed]


KINDS = {
    "AWS::IAM::Role": Kind(
        create=_role,
        required=names("AssumeRolePolicyDocument"),
        optional=names("RoleName Path Policies ManagedPolicyArns Description Tags"),
    ),
}
