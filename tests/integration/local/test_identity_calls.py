"""Who is calling, and what a limited role may do, through the front door."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local.identity.identities import Credentials
from tests.integration.local.bare_twin import BareTwin, bare_twin

TABLE = "arn:aws:dynamodb:us-east-1:123456789012:table/jobs"
JOB: dict[str, Any] = {
    "TrainingJobName": "job1",
    "RoleArn": "arn:aws:iam::123456789012:role/training",
    "OutputDataConfig": {"S3OutputPath": "s3://b/o"},
    "Tags": [{"Key": "trainmaster:stack", "Value": "own"}],
}


def allow(action: str | list[str], resource: str = "*", **condition: Any) -> dict[str, Any]:
    statement = {"Effect": "Allow", "Action": action, "Resource": resource}
    return statement | ({"Condition": condition} if condition else {})


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BareTwin]:
    with bare_twin(tmp_path_factory.mktemp("twin")) as made:
        own = made.engine.client("dynamodb")
        key = made.engine.client("kms").create_key()["KeyMetadata"]["Arn"]
        schema = {
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "BillingMode": "PAY_PER_REQUEST",
        }
        own.create_table(TableName="jobs", **schema)
        encryption = {"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": key}
        own.create_table(TableName="secret", SSESpecification=encryption, **schema)
        own.create_table(TableName="default", SSESpecification={"Enabled": True, "SSEType": "KMS"}, **schema)
        made.door.mount_service("sagemaker", lambda operation, *_: {"TrainingJobArn": operation})
        made.door.add_resource_tags("sagemaker", tags_of)
        yield made


@pytest.fixture
def twin(shared: BareTwin) -> BareTwin:
    shared.journal_path.write_text("")
    return shared


def tags_of(arn: str) -> dict[str, str] | None:
    name = arn.rpartition("/")[2]
    return {"ours": {"trainmaster:stack": "own"}, "foreign": {}}.get(name)


def refused(call: Any, *args: Any, **params: Any) -> tuple[str, int, str]:
    with pytest.raises(ClientError) as error:
        call(*args, **params)
    response = error.value.response
    return (
        response["Error"]["Code"],
        response["ResponseMetadata"]["HTTPStatusCode"],
        response["Error"]["Message"],
    )


def get(pk: str = "a", table: str = "jobs") -> dict[str, Any]:
    return {"TableName": table, "Key": {"pk": {"S": pk}}}


def test_the_caller_is_told_truly(twin: BareTwin) -> None:
    assert twin.client("sts").get_caller_identity()["Arn"] == "arn:aws:iam::123456789012:user/local-admin"
    role = "arn:aws:iam::123456789012:role/team/engineer"
    made = twin.client("sts").assume_role(RoleArn=role, RoleSessionName="anna")
    keys = made["Credentials"]
    assert made["AssumedRoleUser"]["Arn"] == "arn:aws:sts::123456789012:assumed-role/engineer/anna"
    session = Credentials(
        principal=twin.admin.principal,
        access_key_id=keys["AccessKeyId"],
        secret_access_key=keys["SecretAccessKey"],
        session_token=keys["SessionToken"],
    )
    assert twin.client("sts", session).get_caller_identity() | {"ResponseMetadata": None} == {
        "UserId": keys["AccessKeyId"],
        "Account": "123456789012",
        "Arn": "arn:aws:sts::123456789012:assumed-role/engineer/anna",
        "ResponseMetadata": None,
    }
    twin.client("dynamodb", session).get_item(**get())
    assert twin.calls()[-1]["principal"] == "arn:aws:sts::123456789012:assumed-role/engineer/anna"


KEY = "arn:aws:kms:us-east-1:123456789012:key/volumes"
ENCRYPTED = JOB | {"ResourceConfig": {"VolumeSizeInGB": 1, "VolumeKmsKeyId": KEY}}
STARTS = allow(["sagemaker:*", "iam:PassRole"])
FOR_SAGEMAKER = {
    "Bool": {"kms:GrantIsForAWSResource": "true"},
    "StringEquals": {"kms:ViaService": "sagemaker.us-east-1.amazonaws.com"},
}


@pytest.mark.parametrize(
    ("resources", "grant"),
    [
        pytest.param({"VolumeKmsKeyId": KEY}, allow("kms:CreateGrant", KEY, **FOR_SAGEMAKER), id="an ARN"),
        pytest.param({"VolumeKmsKeyId": "volumes"}, allow("kms:CreateGrant", KEY), id="an id"),
        pytest.param({}, STARTS, id="no key"),
    ],
)
def test_whoever_may_create_a_grant_on_the_key_may_start_the_job(
    twin: BareTwin, resources: dict[str, Any], grant: dict[str, Any]
) -> None:
    job = JOB | {"ResourceConfig": {"VolumeSizeInGB": 1, **resources}}
    twin.client("sagemaker", twin.function_role(STARTS, grant)).create_training_job(**job)


@pytest.mark.parametrize(
    "grant",
    [
        pytest.param(allow("kms:Decrypt", KEY), id="another right"),
        pytest.param(allow("kms:CreateGrant", f"{KEY}-of-others"), id="on another key"),
        pytest.param(
            allow("kms:CreateGrant", KEY, StringEquals={"kms:ViaService": "ec2.us-east-1.amazonaws.com"}),
            id="for another service",
        ),
    ],
)
def test_without_a_grant_on_its_key_a_job_is_refused(twin: BareTwin, grant: dict[str, Any]) -> None:
    limited = twin.client("sagemaker", twin.function_role(STARTS, grant))
    code, status, message = refused(limited.create_training_job, **ENCRYPTED)
    assert (code, status) == ("AccessDeniedException", 400)
    assert f"is not authorized to perform: kms:CreateGrant on resource: {KEY}" in message


def test_the_right_of_the_job_s_role_does_as_well(twin: BareTwin) -> None:
    iam = twin.client("iam")
    trust = {"Version": "2012-10-17", "Statement": []}
    iam.create_role(RoleName="training", AssumeRolePolicyDocument=json.dumps(trust))
    limited = twin.client("sagemaker", twin.function_role(STARTS))
    assert refused(limited.create_training_job, **ENCRYPTED)[0] == "AccessDeniedException"
    document = {"Version": "2012-10-17", "Statement": [allow("kms:CreateGrant", KEY)]}
    iam.put_role_policy(RoleName="training", PolicyName="key", PolicyDocument=json.dumps(document))
    limited.create_training_job(**ENCRYPTED)


@pytest.mark.parametrize(
    ("role", "session", "code"),
    [
        pytest.param("arn:aws:iam::999999999999:role/x", "anna", "AccessDenied", id="another account"),
        pytest.param("arn:aws:iam::123456789012:user/x", "anna", "AccessDenied", id="a user"),
        pytest.param("arn:aws:iam::123456789012:role/x", "a/b", "ValidationError", id="a wrong session name"),
    ],
)
def test_roles_that_cannot_be_assumed(twin: BareTwin, role: str, session: str, code: str) -> None:
    assert refused(twin.client("sts").assume_role, RoleArn=role, RoleSessionName=session)[0] == code


def test_sts_knows_a_wrong_secret_from_a_right_one(twin: BareTwin) -> None:
    keys = twin.identities.assume("arn:aws:iam::123456789012:role/engineer", "anna")
    wrong = twin.client("sts", replace(keys, secret_access_key="guessed"))
    assert refused(wrong.get_caller_identity)[:2] == ("SignatureDoesNotMatch", 403)


def test_a_temporary_key_is_worth_nothing_without_its_token(twin: BareTwin) -> None:
    keys = twin.identities.assume("arn:aws:iam::123456789012:role/engineer", "anna")
    for wrong in (replace(keys, session_token=None), replace(keys, session_token="guessed")):
        assert refused(twin.client("dynamodb", wrong).get_item, **get())[:2] == (
            "UnrecognizedClientException",
            403,
        )
    assert twin.calls()[-1]["principal"] is None


@pytest.mark.parametrize(
    ("service", "operation", "params", "code"),
    [
        ("dynamodb", "list_tables", {}, "UnrecognizedClientException"),
        ("sagemaker", "list_training_jobs", {}, "UnrecognizedClientException"),
        ("sqs", "list_queues", {}, "InvalidClientTokenId"),
        ("sns", "list_topics", {}, "InvalidClientTokenId"),
        ("sts", "get_caller_identity", {}, "InvalidClientTokenId"),
        ("s3", "list_buckets", {}, "InvalidAccessKeyId"),
    ],
)
def test_an_unknown_key_is_refused_by_every_service(
    twin: BareTwin, service: str, operation: str, params: dict[str, Any], code: str
) -> None:
    nobody = replace(twin.admin, access_key_id="AKIANOBODYNOBODYNOBO")
    assert refused(getattr(twin.client(service, nobody), operation), **params)[:2] == (code, 403)
    assert twin.calls()[-1]["principal"] is None


def test_a_function_role_may_do_exactly_what_its_policies_say(twin: BareTwin) -> None:
    keys = twin.function_role(allow("dynamodb:GetItem", TABLE))
    table = twin.client("dynamodb", keys)
    table.get_item(**get())
    code, status, message = refused(table.put_item, TableName="jobs", Item={"pk": {"S": "a"}})
    assert (code, status) == ("AccessDeniedException", 400)
    assert message == (
        "User: arn:aws:sts::123456789012:assumed-role/limited/function is not authorized to perform: "
        f"dynamodb:PutItem on resource: {TABLE} "
        "because no identity-based policy allows the dynamodb:PutItem action"
    )
    assert refused(table.get_item, **get(table="default"))[0] == "AccessDeniedException"
    last = twin.calls()[-1]
    assert (last["principal"], last["status"], last["error_code"]) == (
        keys.principal.arn,
        400,
        "AccessDeniedException",
    )


def test_a_transaction_needs_the_right_of_each_of_its_parts(twin: BareTwin) -> None:
    check = {"ConditionCheck": get("a") | {"ConditionExpression": "attribute_not_exists(pk)"}}
    items = [{"Put": {"TableName": "jobs", "Item": {"pk": {"S": "b"}}}}, check]
    table = twin.client("dynamodb", twin.function_role(allow("dynamodb:PutItem", TABLE)))
    assert "dynamodb:ConditionCheckItem" in refused(table.transact_write_items, TransactItems=items)[2]
    both = twin.function_role(allow(["dynamodb:PutItem", "dynamodb:ConditionCheckItem"], TABLE))
    twin.client("dynamodb", both).transact_write_items(TransactItems=items)


@pytest.mark.parametrize(
    ("service", "operation", "params", "code", "status"),
    [
        ("sqs", "send_message", {"QueueUrl": "http://x/1/q", "MessageBody": "m"}, "AccessDenied", 403),
        ("sns", "publish", {"TopicArn": "arn:t", "Message": "m"}, "AuthorizationError", 403),
        (
            "sts",
            "assume_role",
            {"RoleArn": "arn:aws:iam::1:role/x", "RoleSessionName": "x1"},
            "AccessDenied",
            403,
        ),
        ("s3", "get_object", {"Bucket": "bkt", "Key": "k"}, "AccessDenied", 403),
        ("cloudwatch", "describe_alarms", {}, "AccessDenied", 403),
        ("ssm", "get_parameter", {"Name": "/a"}, "AccessDeniedException", 400),
        ("logs", "describe_log_streams", {"logGroupName": "/g"}, "AccessDeniedException", 400),
    ],
)
def test_a_refusal_is_in_the_shape_of_the_service(
    twin: BareTwin, service: str, operation: str, params: dict[str, Any], code: str, status: int
) -> None:
    client = twin.client(service, twin.function_role(allow("none:Such")))
    assert refused(getattr(client, operation), **params)[:2] == (code, status)


def test_a_call_that_is_not_mapped_never_passes_silently(twin: BareTwin) -> None:
    client = twin.client("dynamodb", twin.function_role(allow("*")))
    code, _, message = refused(client.create_backup, TableName="jobs", BackupName="abc")
    assert code == "AccessDeniedException"
    assert "dynamodb:CreateBackup is not mapped to IAM actions" in message


def test_a_job_is_created_only_with_the_right_tag_and_a_role_that_may_be_passed(twin: BareTwin) -> None:
    create = allow("sagemaker:CreateTrainingJob", StringEquals={"aws:RequestTag/trainmaster:stack": "own"})
    tag = allow("sagemaker:AddTags", StringEquals={"sagemaker:TaggingAction": "CreateTrainingJob"})
    pass_role = allow(
        "iam:PassRole", JOB["RoleArn"], StringEquals={"iam:PassedToService": "sagemaker.amazonaws.com"}
    )

    def training(*statements: dict[str, Any]) -> Any:
        return twin.client("sagemaker", twin.function_role(*statements)).create_training_job

    training(create, tag, pass_role)(**JOB)
    assert "sagemaker:AddTags" in refused(training(create, pass_role), **JOB)[2]
    assert "iam:PassRole" in refused(training(create, tag), **JOB)[2]
    foreign = JOB | {"Tags": [{"Key": "trainmaster:stack", "Value": "foreign"}]}
    assert "sagemaker:CreateTrainingJob" in refused(training(create, tag, pass_role), **foreign)[2]
    other_role = JOB | {"RoleArn": "arn:aws:iam::123456789012:role/other"}
    assert "iam:PassRole" in refused(training(create, tag, pass_role), **other_role)[2]


def test_a_job_is_stopped_only_when_its_own_tag_says_so(twin: BareTwin) -> None:
    stop = allow("sagemaker:StopTrainingJob", StringEquals={"aws:ResourceTag/trainmaster:stack": "own"})
    training = twin.client("sagemaker", twin.function_role(stop))
    training.stop_training_job(TrainingJobName="ours")
    for name in ("foreign", "nobody"):
        assert refused(training.stop_training_job, TrainingJobName=name)[0] == "AccessDeniedException"


def test_a_table_under_a_key_of_ours_needs_the_key_and_under_aws_own_key_does_not(twin: BareTwin) -> None:
    reading = allow("dynamodb:GetItem")
    table = twin.client("dynamodb", twin.function_role(reading))
    table.get_item(**get(table="default"))
    assert "kms:Decrypt" in refused(table.get_item, **get(table="secret"))[2]
    via = {"kms:ViaService": "dynamodb.us-east-1.amazonaws.com"}
    with_key = twin.function_role(reading, allow("kms:Decrypt", StringEquals=via))
    twin.client("dynamodb", with_key).get_item(**get(table="secret"))


def test_an_encrypted_queue_needs_its_key(twin: BareTwin) -> None:
    key = twin.engine.client("kms").create_key()["KeyMetadata"]["KeyId"]
    url = twin.client("sqs").create_queue(QueueName="secret", Attributes={"KmsMasterKeyId": key})["QueueUrl"]
    queues = twin.client("sqs", twin.function_role(allow("sqs:*")))
    assert "kms:GenerateDataKey" in refused(queues.send_message, QueueUrl=url, MessageBody="m")[2]
    with_key = twin.client("sqs", twin.function_role(allow(["sqs:*", "kms:*"])))
    assert with_key.send_message(QueueUrl=url, MessageBody="m")["MessageId"]


def test_a_role_that_iam_made_may_do_what_its_own_policies_say(twin: BareTwin) -> None:
    iam = twin.client("iam")
    role = iam.create_role(RoleName="made", Path="/p/", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    table = twin.client("dynamodb", twin.identities.assume(role, "anna"))
    assert refused(table.get_item, **get())[0] == "AccessDeniedException"
    document = json.dumps({"Version": "2012-10-17", "Statement": allow("dynamodb:GetItem")})
    iam.put_role_policy(RoleName="made", PolicyName="inline", PolicyDocument=document)
    table.get_item(**get())
    denied = {"Effect": "Deny", "Action": "dynamodb:*", "Resource": TABLE}
    document = json.dumps({"Version": "2012-10-17", "Statement": denied})
    policy = iam.create_policy(PolicyName="managed", PolicyDocument=document)["Policy"]["Arn"]
    iam.attach_role_policy(RoleName="made", PolicyArn=policy)
    message = refused(table.get_item, **get())[2]
    assert message.endswith("with an explicit deny in an identity-based policy")
    iam.detach_role_policy(RoleName="made", PolicyArn=policy)
    table.get_item(**get())


def test_a_managed_policy_of_aws_can_be_attached(twin: BareTwin) -> None:
    iam = twin.client("iam")
    role = iam.create_role(RoleName="dba", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    iam.attach_role_policy(RoleName="dba", PolicyArn="arn:aws:iam::aws:policy/AmazonDynamoDBFullAccess")
    table = twin.client("dynamodb", twin.identities.assume(role, "anna"))
    table.put_item(TableName="jobs", Item={"pk": {"S": "a"}})


def test_a_role_made_through_iam_is_assumed_by_whom_its_trust_policy_names_as_it_says(twin: BareTwin) -> None:
    who = f"arn:aws:iam::{twin.account_id}:role/limited"
    conditions = {"StringEquals": {"aws:RequestTag/team": "red"}}
    statement = {"Effect": "Allow", "Action": ["sts:AssumeRole", "sts:TagSession"], "Condition": conditions}
    role = f"arn:aws:iam::{twin.account_id}:role/launcher"
    sts = twin.client("sts", twin.function_role(allow("sts:*", role)))
    for principal, team, may_be in (
        ({"AWS": who}, "red", True),
        ({"AWS": [twin.account_id]}, "red", True),
        ({"AWS": who}, "blue", False),
        ({"AWS": f"{who}-2"}, "red", False),
        ({"Service": "sagemaker.amazonaws.com"}, "red", False),
    ):
        trust = json.dumps({"Version": "2012-10-17", "Statement": [statement | {"Principal": principal}]})
        twin.client("iam").create_role(RoleName="launcher", AssumeRolePolicyDocument=trust)
        asked = {"RoleArn": role, "RoleSessionName": "me", "Tags": [{"Key": "team", "Value": team}]}
        if may_be:
            assert sts.assume_role(**asked)["AssumedRoleUser"]["Arn"].endswith("assumed-role/launcher/me")
        else:
            assert refused(sts.assume_role, **asked)[0] == "AccessDenied"
        twin.client("iam").delete_role(RoleName="launcher")


def test_tags_of_a_session_ask_for_a_right_of_their_own(twin: BareTwin) -> None:
    role = f"arn:aws:iam::{twin.account_id}:role/launcher"
    sts = twin.client("sts", twin.function_role(allow("sts:AssumeRole", role)))
    asked = {"RoleArn": role, "RoleSessionName": "me"}
    assert sts.assume_role(**asked)
    tags = [{"Key": "team", "Value": "red"}]
    assert "sts:TagSession" in refused(sts.assume_role, **asked, Tags=tags)[2]


def test_a_role_that_nobody_limited_may_do_everything(twin: BareTwin) -> None:
    keys = twin.identities.assume("arn:aws:iam::123456789012:role/engineer", "anna")
    twin.client("dynamodb", keys).put_item(TableName="jobs", Item={"pk": {"S": "a"}})


def test_a_policy_that_the_evaluator_does_not_know_is_refused_when_it_is_added(twin: BareTwin) -> None:
    with pytest.raises(ValueError, match="unknown condition operator 'DateGreaterThan'"):
        twin.function_role(allow("*", DateGreaterThan={"aws:CurrentTime": "2026-01-01"}))
