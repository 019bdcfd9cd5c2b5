"""The table and its key: how they are protected, and that they outlive the stack."""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.template.stack import of_type, without

_KEPT = {"DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"}
_KEPT_UNLESS_NEW = {"DeletionPolicy": "RetainExceptOnCreate", "UpdateReplacePolicy": "Retain"}
"""Deleted if the very operation that made it fails, so that a failed first deployment leaves nothing."""
TABLE = {
    "BillingMode": "PAY_PER_REQUEST",
    "AttributeDefinitions": [
        {"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk", "team", "ended_at")
    ],
    "KeySchema": [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by_team",
            "KeySchema": [
                {"AttributeName": "team", "KeyType": "HASH"},
                {"AttributeName": "ended_at", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
    "TimeToLiveSpecification": {"AttributeName": "ttl", "Enabled": True},
    "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
    "DeletionProtectionEnabled": True,
    "SSESpecification": {"SSEEnabled": True, "SSEType": "KMS", "KMSMasterKeyId": "${Key.Arn}"},
}


def wrong_table(stack: Mapping[str, Any]) -> Iterator[str]:
    if of_type(stack, "AWS::DynamoDB::Table") != {"Table": TABLE}:
        yield "table"


def wrong_retention(stack: Mapping[str, Any]) -> Iterator[str]:
    """What cannot be made again outlives the stack; so does what other APIs of the account use."""
    ours = ("Table", "Key", *of_type(stack, "AWS::Logs::LogGroup"))
    of_the_account = ("ApiGatewayLogRole", "ApiGatewayAccount")
    wanted = dict.fromkeys(ours, _KEPT_UNLESS_NEW) | dict.fromkeys(of_the_account, _KEPT)
    for name, policies in wanted.items():
        if {key: stack[name].get(key) for key in policies} != policies:
            yield f"{name}: not retained"


KEY_STATEMENTS = [
    {
        "Effect": "Allow",
        "Principal": {"AWS": "arn:aws:iam::111122223333:root"},
        "Action": "kms:*",
        "Resource": "*",
    },
    {
        "Effect": "Allow",
        "Principal": {
            "Service": [
                "cloudwatch.amazonaws.com",
                "events.amazonaws.com",
                "sns.amazonaws.com",
                "sqs.amazonaws.com",
            ]
        },
        "Action": ["kms:Decrypt", "kms:GenerateDataKey*"],
        "Resource": "*",
    },
    {
        "Effect": "Allow",
        "Principal": {"Service": "logs.eu-west-1.amazonaws.com"},
        "Action": ["kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:DescribeKey"],
        "Resource": "*",
        "Condition": {
            "ArnLike": {
                "kms:EncryptionContext:aws:logs:arn": [
                    "arn:aws:logs:eu-west-1:111122223333:log-group:/aws/lambda/prod-*",
                    "arn:aws:logs:eu-west-1:111122223333:log-group:/aws/apigateway/prod",
                ]
            }
        },
    },
]


def wrong_key(stack: Mapping[str, Any]) -> Iterator[str]:
    """Without the services' grant alarms, events and redrives are dropped, and nothing says so."""
    (key,) = of_type(stack, "AWS::KMS::Key").values()
    statements = [without(one, "Sid") for one in key.get("KeyPolicy", {}).get("Statement", [])]
    if statements != KEY_STATEMENTS or key["KeyPolicy"].get("Version") != "2012-10-17":
        yield f"key policy: {statements}"
    if key.get("EnableKeyRotation") is not True:
        yield "key: no rotation"
    if of_type(stack, "AWS::KMS::Alias") != {
        "KeyAlias": {"AliasName": "alias/prod", "TargetKeyId": "${Key}"}
    }:
        yield "key: alias"
