"""Checks the customer's KMS keys: of job volumes, of buckets with checkpoints, of the table."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from trainmaster_client.doctor.account import named_roles, principal
from trainmaster_client.doctor.deployed import deployed_stack, parameters
from trainmaster_client.doctor.findings import AwsSaid, Finding, Seen, asked, good, skipped, worth_a_warning
from trainmaster_client.errors.troubles import Trouble

_TABLE_KEY_ACTIONS = (
    "kms:CreateGrant",
    "kms:Decrypt",
    "kms:DescribeKey",
    "kms:Encrypt",
    "kms:GenerateDataKey",
    "kms:ReEncryptFrom",
    "kms:ReEncryptTo",
)
"""The six of the DynamoDB developer guide, "Using AWS KMS keys to encrypt DynamoDB tables"; it writes one of
them as kms:ReEncrypt*."""
_KMS = ("aws:kms", "aws:kms:dsse")


def volume_keys(seen: Seen) -> Finding:
    """Check the keys that rules of the policy name; keys that no rule names cannot be looked up."""
    stack = deployed_stack(seen)
    if isinstance(stack, Finding):
        return stack
    listed = _listed(parameters(stack), "TrainingKmsKeyArns")
    policy = seen.policy or {}
    lacking = [
        key for key in _allowed_keys(policy) if not any(fnmatchcase(pattern, key) for pattern in listed)
    ]
    if not lacking:
        return good(f"TrainingKmsKeyArns has {', '.join(listed) or 'none'}; others need a right of the role")
    roles = named_roles(policy)
    if roles and all(_may(seen, role, ("kms:CreateGrant",), key) for role in roles for key in lacking):
        return good(f"{', '.join(roles)} have kms:CreateGrant")
    return worth_a_warning(Trouble.VOLUME_KEYS, ", ".join(lacking))


def checkpoint_keys(seen: Seen) -> Finding:
    stack = deployed_stack(seen)
    if isinstance(stack, Finding):
        return stack
    listed = _listed(parameters(stack), "CheckpointKmsKeyArns")
    buckets = [arn.rpartition(":")[2] for arn in _listed(parameters(stack), "CheckpointBuckets")]
    if not buckets:
        return skipped("CheckpointBuckets is empty: the age of checkpoints is unknown")
    lacking = []
    for bucket in buckets:
        key = _key_of_bucket(seen, bucket)
        if isinstance(key, AwsSaid):
            return skipped(f"{bucket}: {key.why}")
        if key and not any(arn.endswith(key.rpartition("/")[2]) for arn in listed):
            lacking.append(f"{bucket}: {key}")
    return worth_a_warning(Trouble.CHECKPOINT_KEYS, ", ".join(lacking)) if lacking else good("all of them")


def table_key(seen: Seen) -> Finding:
    """Check that the caller could deploy with a key; nothing of it is needed to use or run the queue."""
    arn = principal(seen)
    if seen.policy is None or arn is None:
        return skipped("for admins who deploy")
    partition, account = arn.split(":")[1], arn.split(":")[4]
    key = f"arn:{partition}:kms:{seen.region}:{account}:key/*"
    may = _may(seen, arn, _TABLE_KEY_ACTIONS, key)
    if may is None:
        return skipped("IAM does not say")
    return good("all six actions") if may else worth_a_warning(Trouble.TABLE_KEY, arn)


def _listed(given: Mapping[str, str], name: str) -> list[str]:
    return [part.strip() for part in given.get(name, "").split(",") if part.strip()]


def _allowed_keys(policy: Mapping[str, Any]) -> list[str]:
    document = policy.get("policy")
    document = document if isinstance(document, dict) else {}
    rules = [document.get("rules"), *(team.get("rules") for team in document.get("teams") or ())]
    sections = ((section or {}).get("kms_keys") or {} for section in rules)
    allowed = (keys if isinstance(keys, list) else keys.get("allow") or () for keys in sections)
    return sorted({str(key) for keys in allowed for key in keys})


def _may(seen: Seen, arn: str, actions: tuple[str, ...], key: str) -> bool | None:
    """Ask IAM's simulation, which knows no key policies; None if IAM does not answer."""
    question = {"PolicySourceArn": arn, "ActionNames": list(actions), "ResourceArns": [key]}
    simulation = asked(lambda: seen.client("iam").simulate_principal_policy(**question))
    if isinstance(simulation, AwsSaid):
        return None
    return all(result["EvalDecision"] == "allowed" for result in simulation["EvaluationResults"])


def _key_of_bucket(seen: Seen, bucket: str) -> str | AwsSaid | None:
    """Return the customer's key that encrypts new objects; None if the key is one of AWS's own."""
    encryption = asked(lambda: seen.client("s3").get_bucket_encryption(Bucket=bucket))
    if isinstance(encryption, AwsSaid):
        return encryption
    for rule in encryption["ServerSideEncryptionConfiguration"]["Rules"]:
        default = rule.get("ApplyServerSideEncryptionByDefault", {})
        key = str(default.get("KMSMasterKeyID", ""))
        if default.get("SSEAlgorithm") in _KMS and key and not key.endswith("alias/aws/s3"):
            return key
    return None
