"""Which permissions a call needs, operation by operation."""

from typing import Any

import pytest

from local.identity.checks import NotMappedError, Operation
from local.identity.data_requests import encryption_checks
from local.identity.requests import checks

ROLE = "arn:aws:iam::1:role/training"
TABLE = "arn:aws:dynamodb:us-east-1:1:table/jobs"
SAGEMAKER = "arn:aws:sagemaker:us-east-1:1"
JOB = f"{SAGEMAKER}:training-job/job1"
PLAN = f"{SAGEMAKER}:training-plan/spring"
QUEUE = {"QueueUrl": "http://127.0.0.1:4599/1/bell"}
LOGS = {"logGroupName": "/aws/g"}
TAG = {"Key": "trainmaster:stack", "Value": "s"}


def operation(service: str, name: str, params: dict[str, Any]) -> Operation:
    return Operation(service=service, name=name, params=params, region="us-east-1", account_id="1")


@pytest.mark.parametrize(
    ("service", "name", "params", "needed"),
    [
        ("dynamodb", "GetItem", {"TableName": "jobs"}, [("dynamodb:GetItem", TABLE)]),
        ("dynamodb", "PutItem", {"TableName": TABLE}, [("dynamodb:PutItem", TABLE)]),
        ("dynamodb", "UpdateItem", {"TableName": "jobs"}, [("dynamodb:UpdateItem", TABLE)]),
        ("dynamodb", "DeleteItem", {"TableName": "jobs"}, [("dynamodb:DeleteItem", TABLE)]),
        ("dynamodb", "Query", {"TableName": "jobs"}, [("dynamodb:Query", TABLE)]),
        (
            "dynamodb",
            "Query",
            {"TableName": "jobs", "IndexName": "by_team"},
            [("dynamodb:Query", f"{TABLE}/index/by_team")],
        ),
        ("dynamodb", "BatchGetItem", {"RequestItems": {"jobs": {}}}, [("dynamodb:BatchGetItem", TABLE)]),
        (
            "dynamodb",
            "TransactGetItems",
            {"TransactItems": [{"Get": {"TableName": "jobs"}}]},
            [("dynamodb:GetItem", TABLE)],
        ),
        (
            "dynamodb",
            "TransactWriteItems",
            {
                "TransactItems": [
                    {kind: {"TableName": "jobs"}} for kind in ("Put", "Update", "Delete", "ConditionCheck")
                ]
            },
            [
                ("dynamodb:PutItem", TABLE),
                ("dynamodb:UpdateItem", TABLE),
                ("dynamodb:DeleteItem", TABLE),
                ("dynamodb:ConditionCheckItem", TABLE),
            ],
        ),
        (
            "sagemaker",
            "CreateTrainingJob",
            {"TrainingJobName": "job1", "ResourceConfig": {"TrainingPlanArn": PLAN}},
            [("sagemaker:CreateTrainingJob", JOB), ("sagemaker:CreateTrainingJob", PLAN)],
        ),
        *(
            (
                "sagemaker",
                "DescribeTrainingPlan",
                {"TrainingPlanName": name},
                [("sagemaker:DescribeTrainingPlan", PLAN)],
            )
            for name in ("spring", PLAN)
        ),
        (
            "sagemaker",
            "CreateTrainingPlan",
            {"TrainingPlanName": "spring"},
            [("sagemaker:CreateTrainingPlan", PLAN)],
        ),
        *(
            ("sagemaker", name, {}, [(f"sagemaker:{name}", "*")])
            for name in ("ListTrainingPlans", "SearchTrainingPlanOfferings")
        ),
        ("sqs", "SendMessage", QUEUE, [("sqs:SendMessage", "arn:aws:sqs:us-east-1:1:bell")]),
        ("sqs", "SendMessageBatch", QUEUE, [("sqs:SendMessage", "arn:aws:sqs:us-east-1:1:bell")]),
        ("sqs", "DeleteMessageBatch", QUEUE, [("sqs:DeleteMessage", "arn:aws:sqs:us-east-1:1:bell")]),
        (
            "sns",
            "Publish",
            {"TopicArn": "arn:aws:sns:us-east-1:1:t"},
            [("sns:Publish", "arn:aws:sns:us-east-1:1:t")],
        ),
        (
            "sagemaker",
            "DescribeTrainingJob",
            {"TrainingJobName": "job1"},
            [("sagemaker:DescribeTrainingJob", JOB)],
        ),
        ("sagemaker", "StopTrainingJob", {"TrainingJobName": "job1"}, [("sagemaker:StopTrainingJob", JOB)]),
        (
            "sagemaker",
            "UpdateTrainingJob",
            {"TrainingJobName": "job1"},
            [("sagemaker:UpdateTrainingJob", JOB)],
        ),
        ("sagemaker", "ListTrainingJobs", {}, [("sagemaker:ListTrainingJobs", "*")]),
        ("sagemaker", "ListTags", {"ResourceArn": JOB}, [("sagemaker:ListTags", JOB)]),
        (
            "sagemaker",
            "CreateTrainingJob",
            {"TrainingJobName": "job1", "RoleArn": ROLE},
            [("sagemaker:CreateTrainingJob", JOB), ("iam:PassRole", ROLE)],
        ),
        (
            "sagemaker",
            "CreateTrainingJob",
            {"TrainingJobName": "job1", "RoleArn": ROLE, "Tags": [TAG]},
            [("sagemaker:CreateTrainingJob", JOB), ("sagemaker:AddTags", JOB), ("iam:PassRole", ROLE)],
        ),
        (
            "sagemaker",
            "CreateModel",
            {"ModelName": "Mine", "ExecutionRoleArn": ROLE, "Tags": [TAG]},
            [
                ("sagemaker:CreateModel", f"{SAGEMAKER}:model/mine"),
                ("sagemaker:AddTags", f"{SAGEMAKER}:model/mine"),
                ("iam:PassRole", ROLE),
            ],
        ),
        (
            "sagemaker",
            "CreateEndpoint",
            {"EndpointName": "e", "EndpointConfigName": "c"},
            [
                ("sagemaker:CreateEndpoint", f"{SAGEMAKER}:endpoint/e"),
                ("sagemaker:CreateEndpoint", f"{SAGEMAKER}:endpoint-config/c"),
            ],
        ),
        (
            "sagemaker",
            "DeleteEndpointConfig",
            {"EndpointConfigName": "c"},
            [("sagemaker:DeleteEndpointConfig", f"{SAGEMAKER}:endpoint-config/c")],
        ),
        ("sagemaker", "ListEndpoints", {}, [("sagemaker:ListEndpoints", "*")]),
        (
            "cloudwatch",
            "PutMetricAlarm",
            {"AlarmName": "a"},
            [("cloudwatch:PutMetricAlarm", "arn:aws:cloudwatch:us-east-1:1:alarm:a")],
        ),
        (
            "cloudwatch",
            "PutMetricAlarm",
            {"AlarmName": "a", "Tags": [TAG]},
            [
                ("cloudwatch:PutMetricAlarm", "arn:aws:cloudwatch:us-east-1:1:alarm:a"),
                ("cloudwatch:TagResource", "arn:aws:cloudwatch:us-east-1:1:alarm:a"),
            ],
        ),
        ("cloudwatch", "PutCompositeAlarm", {"AlarmName": "a"}, [("cloudwatch:PutCompositeAlarm", "*")]),
        (
            "cloudwatch",
            "DeleteAlarms",
            {"AlarmNames": ["a", "b"]},
            [
                ("cloudwatch:DeleteAlarms", "arn:aws:cloudwatch:us-east-1:1:alarm:a"),
                ("cloudwatch:DeleteAlarms", "arn:aws:cloudwatch:us-east-1:1:alarm:b"),
            ],
        ),
        ("cloudwatch", "DescribeAlarms", {}, [("cloudwatch:DescribeAlarms", "*")]),
        (
            "events",
            "PutEvents",
            {"Entries": [{"Source": "s"}, {"EventBusName": "arn:aws:events:us-east-1:1:event-bus/own"}]},
            [
                ("events:PutEvents", "arn:aws:events:us-east-1:1:event-bus/default"),
                ("events:PutEvents", "arn:aws:events:us-east-1:1:event-bus/own"),
            ],
        ),
        (
            "logs",
            "GetLogEvents",
            LOGS | {"logStreamName": "s"},
            [("logs:GetLogEvents", "arn:aws:logs:us-east-1:1:log-group:/aws/g:log-stream:s")],
        ),
        (
            "logs",
            "DescribeLogStreams",
            LOGS,
            [("logs:DescribeLogStreams", "arn:aws:logs:us-east-1:1:log-group:/aws/g:log-stream:")],
        ),
        ("s3", "ListObjectsV2", {"Bucket": "b"}, [("s3:ListBucket", "arn:aws:s3:::b")]),
        ("s3", "GetObject", {"Bucket": "b", "Key": "a/k"}, [("s3:GetObject", "arn:aws:s3:::b/a/k")]),
        ("s3", "HeadObject", {"Bucket": "b", "Key": "k"}, [("s3:GetObject", "arn:aws:s3:::b/k")]),
        ("s3", "UploadPart", {"Bucket": "b", "Key": "k"}, [("s3:PutObject", "arn:aws:s3:::b/k")]),
        (
            "ssm",
            "GetParameter",
            {"Name": "/a/b"},
            [("ssm:GetParameter", "arn:aws:ssm:us-east-1:1:parameter/a/b")],
        ),
        ("kms", "Decrypt", {"KeyId": "k"}, [("kms:Decrypt", "arn:aws:kms:us-east-1:1:key/k")]),
        ("sts", "AssumeRole", {"RoleArn": ROLE}, [("sts:AssumeRole", ROLE)]),
        ("sts", "GetCallerIdentity", {}, []),
    ],
)
def test_what_a_call_needs(
    service: str, name: str, params: dict[str, Any], needed: list[tuple[str, str]]
) -> None:
    assert [(check.action, check.resource) for check in checks(operation(service, name, params))] == needed


def test_creating_a_tagged_job_tells_the_tags_the_tagging_and_the_service_that_gets_the_role() -> None:
    params = {"TrainingJobName": "job1", "RoleArn": ROLE, "Tags": [TAG]}
    create, tag, role = checks(operation("sagemaker", "CreateTrainingJob", params))
    tags = {"aws:RequestTag/trainmaster:stack": "s", "aws:TagKeys": ("trainmaster:stack",)}
    assert create.context == tags
    assert tag.context == tags | {"sagemaker:TaggingAction": "CreateTrainingJob"}
    assert role.context == {"iam:PassedToService": "sagemaker.amazonaws.com"}


def test_removing_tags_tells_which() -> None:
    (check,) = checks(operation("sagemaker", "DeleteTags", {"ResourceArn": JOB, "TagKeys": ["a", "b"]}))
    assert (check.resource, check.context) == (JOB, {"aws:TagKeys": ("a", "b")})


def test_an_event_tells_its_source_and_a_listing_its_prefix() -> None:
    (event,) = checks(operation("events", "PutEvents", {"Entries": [{"Source": "s", "DetailType": "d"}]}))
    assert event.context == {"events:source": "s", "events:detail-type": "d"}
    (listing,) = checks(operation("s3", "ListObjectsV2", {"Bucket": "b", "prefix": "p/"}))
    assert listing.context == {"s3:prefix": "p/"}


@pytest.mark.parametrize(
    ("service", "name"),
    [
        ("dynamodb", "CreateTable"),
        ("sqs", "PurgeQueue"),
        ("sns", "Subscribe"),
        ("sagemaker", "CreateProcessingJob"),
        ("cloudwatch", "SetAlarmState"),
        ("events", "PutRule"),
        ("logs", "DeleteLogGroup"),
        ("s3", "DeleteBucket"),
        ("ssm", "PutParameter"),
        ("kms", "ScheduleKeyDeletion"),
        ("sts", "GetSessionToken"),
        ("iam", "CreateUser"),
    ],
)
def test_a_call_that_nobody_has_mapped_is_an_error(service: str, name: str) -> None:
    with pytest.raises(NotMappedError, match=f"{service}:{name} is not mapped to IAM actions"):
        checks(operation(service, name, {}))


@pytest.mark.parametrize(
    ("service", "name", "actions"),
    [
        ("dynamodb", "GetItem", ["kms:Decrypt"]),
        ("dynamodb", "TransactWriteItems", ["kms:Decrypt"]),
        ("sqs", "SendMessage", ["kms:GenerateDataKey", "kms:Decrypt"]),
        ("sqs", "ReceiveMessage", ["kms:Decrypt"]),
        ("sqs", "DeleteMessage", []),
        ("sns", "Publish", ["kms:GenerateDataKey", "kms:Decrypt"]),
    ],
)
def test_an_encrypted_resource_needs_its_key_through_its_service(
    service: str, name: str, actions: list[str]
) -> None:
    found = encryption_checks(operation(service, name, {}), "arn:key")
    via = {"kms:ViaService": f"{service}.us-east-1.amazonaws.com"}
    assert [(check.action, check.resource, check.context) for check in found] == [
        (action, "arn:key", via) for action in actions
    ]
