"""IAM permissions of the services that hold data: DynamoDB, SQS, SNS, S3."""

from collections.abc import Iterator, Mapping

from local.identity.checks import Check, Checks, Operation


def dynamodb(operation: Operation) -> Checks:
    params = operation.params
    match operation.name:
        case "TransactWriteItems" | "TransactGetItems":
            return _in_transaction(operation)
        case "BatchGetItem" | "BatchWriteItem":
            return [_on_table(operation, operation.name, name) for name in params.get("RequestItems", {})]
        case "Query" | "Scan" if "IndexName" in params:
            table = _table_arn(operation, params["TableName"])
            return [
                Check(action=f"dynamodb:{operation.name}", resource=f"{table}/index/{params['IndexName']}")
            ]
        case _ if operation.name in _TABLE_OPERATIONS:
            return [_on_table(operation, operation.name, params.get("TableName", ""))]
        case _:
            return None


_TABLE_OPERATIONS = frozenset(
    {"GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query", "Scan", "DescribeTable", "DescribeTimeToLive"}
)
_TRANSACTION_ACTIONS: Mapping[str, str] = {
    "Put": "PutItem",
    "Update": "UpdateItem",
    "Delete": "DeleteItem",
    "ConditionCheck": "ConditionCheckItem",
    "Get": "GetItem",
}


def _in_transaction(operation: Operation) -> Iterator[Check]:
    for action in operation.params.get("TransactItems", ()):
        for kind, body in action.items():
            yield _on_table(operation, _TRANSACTION_ACTIONS.get(kind, kind), body.get("TableName", ""))


def _on_table(operation: Operation, action: str, table: str) -> Check:
    return Check(action=f"dynamodb:{action}", resource=_table_arn(operation, table))


def _table_arn(operation: Operation, name: str) -> str:
    return name if name.startswith("arn:") else operation.arn("dynamodb", f"table/{name}")


def sqs(operation: Operation) -> Checks:
    name = operation.name.removesuffix("Batch")
    if name not in _QUEUE_OPERATIONS:
        return None
    queue = operation.params.get("QueueUrl", "").rpartition("/")[2] or operation.params.get("QueueName", "")
    return [Check(action=f"sqs:{name}", resource=operation.arn("sqs", queue))]


_QUEUE_OPERATIONS = frozenset(
    {
        "SendMessage",
        "ReceiveMessage",
        "DeleteMessage",
        "ChangeMessageVisibility",
        "GetQueueAttributes",
        "GetQueueUrl",
    }
)


def sns(operation: Operation) -> Checks:
    if operation.name not in {"Publish", "PublishBatch"}:
        return None
    topic = operation.params.get("TopicArn") or operation.params.get("TargetArn") or "*"
    return [Check(action="sns:Publish", resource=topic)]


def s3(operation: Operation) -> Checks:
    action = _S3_ACTIONS.get(operation.name)
    if action is None:
        return None
    bucket = f"arn:aws:s3:::{operation.params.get('Bucket', '')}"
    if action == "s3:ListBucket":
        prefix = operation.params.get("prefix")
        return [
            Check(action=action, resource=bucket, context={} if prefix is None else {"s3:prefix": prefix})
        ]
    return [Check(action=action, resource=f"{bucket}/{operation.params.get('Key', '')}")]


_S3_ACTIONS: Mapping[str, str] = {
    "ListObjectsV2": "s3:ListBucket",
    "ListObjects": "s3:ListBucket",
    "HeadBucket": "s3:ListBucket",
    "GetObject": "s3:GetObject",
    "HeadObject": "s3:GetObject",
    "PutObject": "s3:PutObject",
    "CreateMultipartUpload": "s3:PutObject",
    "UploadPart": "s3:PutObject",
    "CompleteMultipartUpload": "s3:PutObject",
    "AbortMultipartUpload": "s3:AbortMultipartUpload",
    "DeleteObject": "s3:DeleteObject",
}


def encryption_checks(operation: Operation, key_arn: str) -> tuple[Check, ...]:
    """Return what a service checks for the caller before it uses a resource's customer key."""
    via = {"kms:ViaService": f"{operation.service}.{operation.region}.amazonaws.com"}
    actions = _KEY_USE.get((operation.service, operation.name), ())
    if operation.service == "dynamodb":
        actions = ("kms:Decrypt",)
    return tuple(Check(action=action, resource=key_arn, context=via) for action in actions)


_KEY_USE: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("sqs", "SendMessage"): ("kms:GenerateDataKey", "kms:Decrypt"),
    ("sqs", "SendMessageBatch"): ("kms:GenerateDataKey", "kms:Decrypt"),
    ("sqs", "ReceiveMessage"): ("kms:Decrypt",),
    ("sns", "Publish"): ("kms:GenerateDataKey", "kms:Decrypt"),
    ("sns", "PublishBatch"): ("kms:GenerateDataKey", "kms:Decrypt"),
}
"""Source: SQS developer guide, "Key management"; SNS developer guide, "Managing encryption keys"."""
