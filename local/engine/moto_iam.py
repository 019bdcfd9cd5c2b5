"""Reads IAM policies and encryption keys that callers of the twin have made in moto."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from moto.dynamodb.models import dynamodb_backends
from moto.iam.aws_managed_policies import aws_managed_policies_data
from moto.iam.models import AWSManagedPolicy, Role, iam_backends
from moto.kms.models import kms_backends
from moto.sns.models import sns_backends
from moto.sqs.models import sqs_backends

from local.identity.checks import Operation
from local.wire import Principal


def policies_of(account_id: str, arn: str) -> Sequence[Mapping[str, Any]] | None:
    """Return inline and attached policies of a user or role made through IAM; None if it does not exist."""
    kind, _, path = arn.rpartition(":")[2].partition("/")
    users = iam_backends[account_id]["aws"].users
    owner = _role(account_id, arn) if kind == "role" else users.get(path.rpartition("/")[2])
    if owner is None:
        return None
    attached = [
        version.document
        for policy in owner.managed_policies.values()
        for version in policy.versions
        if version.is_default
    ]
    return [json.loads(text) for text in (*owner.policies.values(), *attached)]


def trust_of(account_id: str, arn: str) -> Mapping[str, Any] | None:
    """Return the trust policy of a role made through IAM; None if the role or its statements are missing."""
    role = _role(account_id, arn)
    document = json.loads(role.assume_role_policy_document or "{}") if role is not None else {}
    return document if document.get("Statement") else None


def _role(account_id: str, arn: str) -> Role | None:
    name = arn.rpartition("/")[2]
    return next((role for role in iam_backends[account_id]["aws"].roles.values() if role.name == name), None)


def know_aws_policies(account_id: str) -> None:
    """Allow attaching AWS's own managed policies from now on; reading them takes moto 0.2 s."""
    backend = iam_backends[account_id]["aws"]
    if backend.aws_managed_policies:
        return
    backend.aws_managed_policies = [
        AWSManagedPolicy.from_data(name, account_id, "aws", data)
        for name, data in json.loads(aws_managed_policies_data).items()
    ]
    backend.managed_policies.update({policy.arn: policy for policy in backend.aws_managed_policies})


def user_of_key(account_id: str, access_key_id: str) -> tuple[Principal, str] | None:
    """Return the IAM user whose key this is, and the secret of the key; None if it is unknown or inactive."""
    backend = iam_backends[account_id]["aws"]
    key = backend.access_keys.get(access_key_id)
    user = backend.users.get(key.user_name) if key is not None else None
    if key is None or user is None or key.status != "Active":
        return None
    principal = Principal(arn=user.arn, account_id=account_id, access_key_id=access_key_id)
    return principal, str(key.secret_access_key)


def encryption_key_of(operation: Operation) -> str | None:
    """Return the ARN of the customer's key that encrypts the resource of this call; None without one."""
    match operation.service:
        case "dynamodb":
            key = _table_key(operation)
        case "sqs":
            name = operation.params.get("QueueUrl", "").rpartition("/")[2]
            queue = sqs_backends[operation.account_id][operation.region].queues.get(name)
            key = queue.kms_master_key_id if queue is not None else None
        case "sns":
            arn = operation.params.get("TopicArn", "")
            topic = sns_backends[operation.account_id][operation.region].topics.get(arn)
            key = topic.kms_master_key_id if topic is not None else None
        case _:
            key = None
    if not key or _is_managed_by_aws(operation, key):
        return None
    return key if key.startswith("arn:") else operation.arn("kms", f"key/{key}")


def _is_managed_by_aws(operation: Operation, key: str) -> bool:
    """Tell whether the key is AWS's own, which needs no permission of the caller."""
    known = kms_backends[operation.account_id][operation.region].keys.get(key.rpartition("/")[2])
    aliases = {key, *(known.aliases if known is not None else ())}
    return any(alias.startswith("alias/aws/") for alias in aliases)


def _table_key(operation: Operation) -> str | None:
    """Return the key of the first table in the call; the product has one table."""
    tables = dynamodb_backends[operation.account_id][operation.region].tables
    for name in _table_names(operation.params):
        table = tables.get(name.rpartition("/")[2])
        if table is not None and table.sse_specification:
            return str(table.sse_specification["KMSMasterKeyId"])
    return None


def _table_names(params: Mapping[str, Any]) -> list[str]:
    in_transaction = [
        body["TableName"] for action in params.get("TransactItems", ()) for body in action.values()
    ]
    return [*params.get("RequestItems", {}), *in_transaction, params.get("TableName", "")]
