"""The table of rights, written out once more: who may do what, on which resource, under which condition."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.template.stack import PARAMETERS, of_type

Grant = tuple[str, str, str]
"""Action, resource, condition as JSON ("{}" for none)."""


def _may(actions: str, *on: str, when: Mapping[str, Any] | None = None) -> frozenset[Grant]:
    condition = json.dumps(when or {}, sort_keys=True)
    return frozenset((action, resource, condition) for action in actions.split() for resource in on)


TRAINING_JOBS = "arn:aws:sagemaker:eu-west-1:111122223333:training-job/*"
TRAINING_PLANS = TRAINING_JOBS.replace("training-job", "training-plan")
OWN = {"StringEquals": {"aws:ResourceTag/trainmaster:stack": "prod"}}
UNTAGGED = {"Null": {"aws:ResourceTag/trainmaster:stack": "true"}}


def _key(*services: str) -> frozenset[Grant]:
    via = [f"{service}.eu-west-1.amazonaws.com" for service in services]
    return _may(
        "kms:Decrypt kms:GenerateDataKey", "${Key.Arn}", when={"StringEquals": {"kms:ViaService": via}}
    )


def _log(function: str) -> frozenset[Grant]:
    return _may("logs:CreateLogStream logs:PutLogEvents", f"${{{function}LogGroup.Arn}}")


TABLE = _may(
    "dynamodb:BatchGetItem dynamodb:ConditionCheckItem dynamodb:DeleteItem dynamodb:GetItem dynamodb:PutItem"
    " dynamodb:Query dynamodb:UpdateItem",
    "${Table.Arn}",
)
RING = _may("sqs:SendMessage", "${DoorbellQueue.Arn}")
READ_JOBS = _may("sagemaker:DescribeTrainingJob sagemaker:ListTags", TRAINING_JOBS)
READ_ALARMS = _may("cloudwatch:DescribeAlarms", "*")
READ_LOGS = _may(
    "logs:DescribeLogStreams logs:GetLogEvents",
    "arn:aws:logs:eu-west-1:111122223333:log-group:/aws/sagemaker/TrainingJobs:*",
)
KEY = _key("dynamodb", "sqs")

RIGHTS: dict[str, frozenset[Grant]] = {
    "ApiFunctionRole": TABLE
    | _may("dynamodb:Query", "${Table.Arn}/index/by_team")
    | RING
    | KEY
    | _log("ApiFunction"),
    "OnTrainingJobEventFunctionRole": TABLE
    | RING
    | READ_JOBS
    | READ_LOGS
    | _may("sqs:SendMessage", "${OnTrainingJobEventDeadLetterQueue.Arn}")
    | KEY
    | _log("OnTrainingJobEventFunction"),
    "OnIdleAlarmFunctionRole": TABLE
    | RING
    | READ_ALARMS
    | _may("sqs:SendMessage", "${OnIdleAlarmDeadLetterQueue.Arn}")
    | KEY
    | _log("OnIdleAlarmFunction"),
    "ReconcileFunctionRole": TABLE
    | _may("dynamodb:Scan", "${Table.Arn}")
    | RING
    | READ_JOBS
    | _may("sagemaker:ListTrainingJobs sagemaker:ListTrainingPlans", "*")
    | _may("sagemaker:DescribeTrainingPlan", TRAINING_PLANS)
    | READ_ALARMS
    | _may("cloudwatch:GetMetricData", "*")
    | READ_LOGS
    | _may("s3:ListBucket", "arn:aws:s3:::one", "arn:aws:s3:::two")
    | _may("s3:GetObject", "arn:aws:s3:::one/*", "arn:aws:s3:::two/*")
    | _may(
        "kms:Decrypt",
        *PARAMETERS["CheckpointKmsKeyArns"],
        when={"StringEquals": {"kms:ViaService": "s3.eu-west-1.amazonaws.com"}},
    )
    | _may("sqs:SendMessage", "${ReconcileDeadLetterQueue.Arn}")
    | KEY
    | _log("ReconcileFunction"),
    "ScheduleFunctionRole": TABLE
    | _may(
        "sqs:ReceiveMessage sqs:DeleteMessage sqs:GetQueueAttributes sqs:SendMessage",
        "${DoorbellQueue.Arn}",
    )
    | READ_JOBS
    | _may(
        "sagemaker:CreateTrainingJob",
        TRAINING_JOBS,
        TRAINING_PLANS,
        when={"StringEquals": {"aws:RequestTag/trainmaster:stack": "prod"}},
    )
    | _may(
        "sagemaker:AddTags",
        TRAINING_JOBS,
        when={"StringEquals": {"sagemaker:TaggingAction": "CreateTrainingJob"}},
    )
    | _may("sagemaker:StopTrainingJob sagemaker:UpdateTrainingJob", TRAINING_JOBS, when=OWN)
    | _may("sagemaker:StopTrainingJob", TRAINING_JOBS, when=UNTAGGED)
    | _may(
        "iam:PassRole",
        *PARAMETERS["TrainingRoleArns"],
        when={"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}},
    )
    | _may(
        "sts:AssumeRole sts:TagSession",
        *PARAMETERS["LauncherRoleArns"],
        when={"StringEquals": {"aws:RequestTag/trainmaster:stack": "prod"}},
    )
    | _may(
        "kms:CreateGrant",
        *PARAMETERS["TrainingKmsKeyArns"],
        when={
            "Bool": {"kms:GrantIsForAWSResource": "true"},
            "StringEquals": {"kms:ViaService": "sagemaker.eu-west-1.amazonaws.com"},
        },
    )
    | _may(
        "cloudwatch:PutMetricAlarm cloudwatch:DeleteAlarms",
        "arn:aws:cloudwatch:eu-west-1:111122223333:alarm:trainmaster-prod-*",
    )
    | _may("cloudwatch:PutCompositeAlarm", "*")
    | _may("sns:Publish", "${MailTopic}")
    | _may("events:PutEvents", "arn:aws:events:eu-west-1:111122223333:event-bus/default")
    | _key("dynamodb", "sqs", "sns")
    | _log("ScheduleFunction"),
    "QueueWidgetFunctionRole": _may("dynamodb:GetItem dynamodb:Query", "${Table.Arn}")
    | _may(
        "kms:Decrypt",
        "${Key.Arn}",
        when={"StringEquals": {"kms:ViaService": "dynamodb.eu-west-1.amazonaws.com"}},
    )
    | _log("QueueWidgetFunction"),
    "ReconcileScheduleRole": _may("lambda:InvokeFunction", "${ReconcileFunction.Arn}")
    | _may("sqs:SendMessage", "${ReconcileDeadLetterQueue.Arn}")
    | _key("sqs"),
    "ApiGatewayLogRole": frozenset(),
}

LAMBDA = {"Principal": {"Service": "lambda.amazonaws.com"}}
TRUST: dict[str, dict[str, Any]] = {
    "ApiFunctionRole": LAMBDA,
    "OnIdleAlarmFunctionRole": LAMBDA,
    "OnTrainingJobEventFunctionRole": LAMBDA,
    "QueueWidgetFunctionRole": LAMBDA,
    "ReconcileFunctionRole": LAMBDA,
    "ScheduleFunctionRole": LAMBDA,
    "ReconcileScheduleRole": {
        "Principal": {"Service": "scheduler.amazonaws.com"},
        "Condition": {"StringEquals": {"aws:SourceAccount": "111122223333"}},
    },
    "ApiGatewayLogRole": {"Principal": {"Service": "apigateway.amazonaws.com"}},
}
MANAGED = {
    "ApiGatewayLogRole": ["arn:aws:iam::aws:policy/service-role/AmazonAPIGatewayPushToCloudWatchLogs"],
}


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def grants(role: Mapping[str, Any]) -> Iterator[Grant]:
    """What the inline policies of a role allow. Raises KeyError for anything but a plain statement."""
    for policy in role.get("Policies", []):
        for statement in policy["PolicyDocument"]["Statement"]:
            if statement["Effect"] != "Allow" or statement.keys() & {"NotAction", "NotResource"}:
                raise KeyError(statement)
            condition = json.dumps(statement.get("Condition", {}), sort_keys=True)
            for action in as_list(statement["Action"]):
                for resource in as_list(statement["Resource"]):
                    yield action, resource, condition


def wrong_rights(stack: Mapping[str, Any]) -> Iterator[str]:
    """Each role may do exactly what the table says: no more, no less."""
    roles = of_type(stack, "AWS::IAM::Role")
    if roles.keys() != RIGHTS.keys():
        yield f"roles: {sorted(roles.keys() ^ RIGHTS.keys())}"
    for name in roles.keys() & RIGHTS.keys():
        given = set(grants(roles[name]))
        for grant in sorted(RIGHTS[name] - given):
            yield f"{name} may no longer: {grant}"
        for grant in sorted(given - RIGHTS[name]):
            yield f"{name} may now: {grant}"


def wrong_trust(stack: Mapping[str, Any]) -> Iterator[str]:
    """Each role is assumed by one service, and holds no managed policy."""
    for name, role in of_type(stack, "AWS::IAM::Role").items():
        expected = [{"Effect": "Allow", "Action": "sts:AssumeRole", **TRUST[name]}]
        if role["AssumeRolePolicyDocument"] != {"Version": "2012-10-17", "Statement": expected}:
            yield f"{name}: trust"
        if role.get("ManagedPolicyArns", []) != MANAGED.get(name, []):
            yield f"{name}: managed policies"
        if any(
            policy["PolicyDocument"].get("Version") != "2012-10-17" for policy in role.get("Policies", [])
        ):
            yield f"{name}: version of a policy"
