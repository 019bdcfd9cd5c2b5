"""The ready-made IAM policies of docs/guides/iam, asked as AWS would ask them, by the twin's evaluator."""

import json
from functools import cache
from typing import Any

import botocore.session
import pytest
from trainmaster.core.request.request import TAG_STACK, TAG_TEAM

from local.deployment.template_yaml import read_template
from local.identity.checks import Operation
from local.identity.conditions import like
from local.identity.evaluator import decide, normalized, parse_policy
from local.identity.requests import checks
from tests.markdown import ROOT, links, text_of

FOLDER = ROOT / "docs/guides/iam"
FILES = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))}
TRUST = {"training-role-trust", "launcher-role-trust"}
IDENTITY = sorted(set(FILES) - TRUST)

ACCOUNT, REGION = "111122223333", "eu-west-1"
JOB = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job/job1"
ANN = f"arn:aws:iam::{ACCOUNT}:role/vision-ann"
SCHEDULE = f"arn:aws:iam::{ACCOUNT}:role/trainmaster-ScheduleFunctionRole-AB12CD34"
FULL_ACCESS = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Action": ["sagemaker:*", "iam:PassRole", "lambda:*"], "Resource": "*"}
    ],
}
"""What people with AmazonSageMakerFullAccess have, as far as it matters here."""
GOVERNED = {"trainmaster:stack": "trainmaster", "trainmaster:attempt": "0"}
REQUEST = {"TrainingJobName": "job1", "RoleArn": f"arn:aws:iam::{ACCOUNT}:role/vision-training"}

PERMISSIONS_ONLY = frozenset(
    {
        "execute-api:Invoke",
        "iam:PassRole",
        "s3:ListBucket",
        "s3:ListBucketMultipartUploads",
        "sts:TagSession",
    }
)
"""No operation has these names. Source: Service Authorization Reference."""
MESSAGES = frozenset(f"{what}{kind}Channel" for what in ("Create", "Open") for kind in ("Control", "Data"))
"""Of ssmmessages, which has no API of its own."""
RENAMED = {"s3:ListMultipartUploadParts": "s3:ListParts", "lambda:InvokeFunction": "lambda:Invoke"}
LONGEST = 5120
"""Characters of a service control policy, white space left out; a managed policy may have 6,144.

Source: AWS Organizations user guide, Quotas; IAM user guide, IAM and STS quotas.
"""


def may(
    files: list[dict[str, Any]],
    service: str,
    operation: str,
    params: dict[str, Any],
    *,
    tags: dict[str, str] | None = None,
    by: str = ANN,
) -> bool:
    """Every question that AWS asks for this call is answered with yes. ``tags``: of the resource."""
    statements = tuple(one for document in files for one in parse_policy(document))
    call = Operation(service=service, name=operation, params=params, region=REGION, account_id=ACCOUNT)
    own = {f"aws:ResourceTag/{key}": value for key, value in (tags or {}).items()}
    return all(
        decide(
            statements,
            question.action,
            question.resource,
            normalized({"aws:PrincipalArn": by, **own, **question.context}),
        )
        == "allowed"
        for question in checks(call)
    )


def allows(document: dict[str, Any], action: str, resource: str, **context: str) -> bool:
    """``context``: condition keys with two underscores for the colon."""
    found = {key.replace("__", ":"): value for key, value in context.items()}
    return decide(parse_policy(document), action, resource, normalized(found)) == "allowed"


# ---- the files


def test_the_guide_links_every_file_and_no_other() -> None:
    linked = {link for link in links(text_of("docs/guides/iam.md")) if link.startswith("iam/")}
    assert linked == {f"iam/{name}.json" for name in FILES}


@pytest.mark.parametrize("name", IDENTITY)
def test_each_is_a_policy_that_fits_and_has_named_statements(name: str) -> None:
    document = FILES[name]
    assert document["Version"] == "2012-10-17"
    assert parse_policy(document)
    sids = [statement["Sid"] for statement in document["Statement"]]
    assert len(set(sids)) == len(sids)
    assert all(sid.isalnum() for sid in sids)
    assert len(json.dumps(document, separators=(",", ":"))) <= LONGEST


@pytest.mark.parametrize("name", sorted(FILES))
def test_each_action_exists(name: str) -> None:
    for action in actions_of(FILES[name]):
        service, _, operation = RENAMED.get(action, action).partition(":")
        if service == "ssmmessages":
            assert operation in MESSAGES
        elif action not in PERMISSIONS_ONLY:
            assert operation in operations_of(service), action


def actions_of(document: dict[str, Any]) -> list[str]:
    found = [statement["Action"] for statement in document["Statement"]]
    return [one for actions in found for one in (actions if isinstance(actions, list) else [actions])]


@cache
def operations_of(service: str) -> frozenset[str]:
    """Some models take a second to load."""
    return frozenset(botocore.session.Session().get_service_model(service).operation_names)


def test_only_a_deny_speaks_of_all_training_jobs_or_of_what_the_queue_alone_may() -> None:
    for name in IDENTITY:
        for statement in FILES[name]["Statement"]:
            if statement["Effect"] == "Allow":
                granted = set(actions_of({"Statement": [statement]}))
                forbidden = {"sagemaker:CreateTrainingJob", "sagemaker:AddTags", "iam:PassRole"}
                assert name == "launcher-role" or granted.isdisjoint(forbidden), (name, statement["Sid"])


# ---- a user, with AmazonSageMakerFullAccess and without


@pytest.fixture(params=["alone", "beside AmazonSageMakerFullAccess"])
def user(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    return [FILES["user"]] if request.param == "alone" else [FILES["user"], FULL_ACCESS]


def test_a_user_starts_nothing_without_the_queue(user: list[dict[str, Any]]) -> None:
    assert not may(user, "sagemaker", "CreateTrainingJob", REQUEST)
    forged = REQUEST | {"Tags": [{"Key": "trainmaster:stack", "Value": "trainmaster"}]}
    assert not may(user, "sagemaker", "CreateTrainingJob", forged)


@pytest.mark.parametrize("method", ["POST/add-job", "GET/jobs", "DELETE/jobs/job1", "GET/policy"])
def test_a_user_may_ask_the_queue(user: list[dict[str, Any]], method: str) -> None:
    assert allows(
        user[0], "execute-api:Invoke", f"arn:aws:execute-api:{REGION}:{ACCOUNT}:API_ID/prod/{method}"
    )


@pytest.mark.parametrize("method", ["PUT/policy", "PUT/policy/paused"])
def test_a_user_may_not_touch_the_policy(user: list[dict[str, Any]], method: str) -> None:
    arn = f"arn:aws:execute-api:{REGION}:{ACCOUNT}:API_ID/prod/{method}"
    assert not allows(user[0], "execute-api:Invoke", arn)
    assert allows(FILES["admin"], "execute-api:Invoke", arn)


@pytest.mark.parametrize("operation", ["StopTrainingJob", "UpdateTrainingJob", "DeleteTrainingJob"])
def test_a_user_has_no_hand_on_jobs_of_the_queue(user: list[dict[str, Any]], operation: str) -> None:
    assert not may(user, "sagemaker", operation, {"TrainingJobName": "job1"}, tags=GOVERNED)


def test_a_user_stops_jobs_that_the_queue_does_not_govern(user: list[dict[str, Any]]) -> None:
    own = {"team": "vision"}
    assert may(user, "sagemaker", "StopTrainingJob", {"TrainingJobName": "job1"}, tags=own)
    assert may(user, "sagemaker", "StopTrainingJob", {"TrainingJobName": "job1"})


FUNCTIONS = sorted(
    name
    for name, resource in read_template(text_of("template.yaml"))["Resources"].items()
    if resource["Type"] == "AWS::Serverless::Function"
)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_user_calls_no_function_past_the_gateway_but_the_widget_s_if_somebody_allows_it(name: str) -> None:
    arn = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:trainmaster-{name}-AB12"
    anything = {"Effect": "Allow", "Action": "lambda:InvokeFunction", "Resource": "*"}
    both = {"Statement": [*FILES["user"]["Statement"], anything]}
    assert allows(both, "lambda:InvokeFunction", arn) is (name == "QueueWidgetFunction")


def test_a_user_sets_and_removes_no_tag_of_ours() -> None:
    user = [FILES["user"], FULL_ACCESS]
    for key, may_be in {"trainmaster:stack": False, "trainmaster:job": False, "team": True}.items():
        tags = {"ResourceArn": JOB, "Tags": [{"Key": "other", "Value": "x"}, {"Key": key, "Value": "x"}]}
        assert may(user, "sagemaker", "AddTags", tags) is may_be, key
        removed = {"ResourceArn": JOB, "TagKeys": ["other", key]}
        assert may(user, "sagemaker", "DeleteTags", removed) is may_be, key


@pytest.mark.parametrize(
    ("service", "operation", "params"),
    [
        ("sagemaker", "DescribeTrainingJob", {"TrainingJobName": "job1"}),
        ("sagemaker", "ListTrainingJobs", {}),
        ("sagemaker", "ListTags", {"ResourceArn": JOB}),
        ("ssm", "GetParameter", {"Name": "/trainmaster/api-url"}),
        ("logs", "DescribeLogStreams", {"logGroupName": "/aws/sagemaker/TrainingJobs"}),
        (
            "logs",
            "GetLogEvents",
            {"logGroupName": "/aws/sagemaker/TrainingJobs", "logStreamName": "job1/algo-1"},
        ),
    ],
)
def test_a_user_and_an_admin_see_what_the_command_and_the_session_read(
    service: str, operation: str, params: dict[str, Any]
) -> None:
    assert may([FILES["user"]], service, operation, params, tags=GOVERNED)
    assert may([FILES["admin"]], service, operation, params, tags=GOVERNED)


@pytest.mark.parametrize(
    "action",
    [
        "cloudwatch:GetMetricStatistics",
        "cloudwatch:GetMetricData",
        "ec2:GetSpotPlacementScores",
        "ec2:DescribeSubnets",
    ],
)
def test_metrics_of_jobs_and_advice_on_spot_are_there_too(action: str) -> None:
    assert allows(FILES["user"], action, "*")
    assert allows(FILES["admin"], action, "*")


def test_an_admin_alone_looks_for_training_plans_and_nobody_buys_one() -> None:
    assert allows(FILES["admin"], "sagemaker:SearchTrainingPlanOfferings", "*")
    assert allows(FILES["admin"], "sagemaker:ListTrainingPlans", "*"), "doctor looks for plans of no pool"
    assert not allows(FILES["user"], "sagemaker:SearchTrainingPlanOfferings", "*")
    assert not any(allows(FILES[name], "sagemaker:CreateTrainingPlan", "*") for name in ("user", "admin"))


def test_a_user_reads_no_other_parameter_and_no_other_log() -> None:
    assert not may([FILES["user"]], "ssm", "GetParameter", {"Name": "/trainmaster/api-url-2"})
    group = {"logGroupName": "/aws/lambda/trainmaster-api", "logStreamName": "x"}
    assert not may([FILES["user"]], "logs", "GetLogEvents", group)
    assert may([FILES["admin"]], "logs", "GetLogEvents", group)


@pytest.mark.parametrize(
    ("action", "resource"),
    [
        ("cloudwatch:GetDashboard", "arn:aws:cloudwatch::111122223333:dashboard/trainmaster-trainmaster"),
        ("cloudwatch:DescribeAlarms", "*"),
        (
            "cloudformation:DescribeStacks",
            "arn:aws:cloudformation:eu-west-1:111122223333:stack/trainmaster/0a1b",
        ),
        (
            "sqs:StartMessageMoveTask",
            "arn:aws:sqs:eu-west-1:111122223333:trainmaster-DoorbellDeadLetterQueue-AB",
        ),
        ("sqs:ReceiveMessage", "arn:aws:sqs:eu-west-1:111122223333:trainmaster-DoorbellDeadLetterQueue-AB"),
        ("sqs:SendMessage", "arn:aws:sqs:eu-west-1:111122223333:trainmaster-DoorbellQueue-AB"),
        (
            "lambda:InvokeFunction",
            "arn:aws:lambda:eu-west-1:111122223333:function:trainmaster-QueueWidgetFunction-AB",
        ),
        ("sqs:PurgeQueue", "arn:aws:sqs:eu-west-1:111122223333:trainmaster-ReconcileDeadLetterQueue-AB"),
    ],
)
def test_an_admin_looks_after_the_stack_and_a_user_does_not(action: str, resource: str) -> None:
    assert allows(FILES["admin"], action, resource)
    assert not allows(FILES["user"], action, resource)


def test_an_admin_uses_keys_for_encrypted_queues_alone() -> None:
    key = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/0123"
    for service, may_be in {"sqs": True, "dynamodb": False, "logs": False}.items():
        via = f"{service}.{REGION}.amazonaws.com"
        assert allows(FILES["admin"], "kms:Decrypt", key, kms__ViaService=via) is may_be


# ---- an organisation


ORGANISATION = [FILES["organization"], FULL_ACCESS]


def test_in_an_organisation_the_queue_s_function_alone_starts_stops_and_tags() -> None:
    tagged = REQUEST | {"Tags": [{"Key": key, "Value": value} for key, value in GOVERNED.items()]}
    named = {"TrainingJobName": "job1"}
    for by, may_be in {SCHEDULE: True, ANN: False, f"{ANN}-ScheduleFunctionRole-1": False}.items():
        assert may(ORGANISATION, "sagemaker", "CreateTrainingJob", tagged, by=by) is may_be
        assert may(ORGANISATION, "sagemaker", "CreateTrainingJob", REQUEST, by=by) is may_be
        assert may(ORGANISATION, "sagemaker", "StopTrainingJob", named, tags=GOVERNED, by=by) is may_be
        assert may(ORGANISATION, "sagemaker", "UpdateTrainingJob", named, tags=GOVERNED, by=by) is may_be


def test_in_an_organisation_a_pipeline_s_role_starts_jobs_but_not_in_our_name() -> None:
    role = f"arn:aws:iam::{ACCOUNT}:role/PIPELINE_ROLE"
    forged = REQUEST | {"Tags": [{"Key": "trainmaster:stack", "Value": "trainmaster"}]}
    assert may(ORGANISATION, "sagemaker", "CreateTrainingJob", REQUEST, by=role)
    assert not may(ORGANISATION, "sagemaker", "CreateTrainingJob", forged, by=role)


def test_in_an_organisation_jobs_without_our_tag_can_be_stopped_as_before() -> None:
    named = {"TrainingJobName": "job1"}
    assert may(ORGANISATION, "sagemaker", "StopTrainingJob", named, tags={"team": "vision"})


def test_in_an_organisation_nobody_calls_the_api_s_function_past_the_gateway() -> None:
    """Who could, would say himself who he is. The role that calls reconcile each minute still may."""
    arn = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:trainmaster"
    both = {"Statement": [*FILES["organization"]["Statement"], *FULL_ACCESS["Statement"]]}
    assert not allows(both, "lambda:InvokeFunction", f"{arn}-ApiFunction-AB12")
    assert allows(both, "lambda:InvokeFunction", f"{arn}-ReconcileFunction-AB12")
    assert not allows(both, "lambda:UpdateFunctionCode", f"{arn}-ApiFunction-AB12", aws__PrincipalArn=ANN)
    deployer = f"arn:aws:iam::{ACCOUNT}:role/DEPLOYMENT_ROLE"
    assert allows(both, "lambda:UpdateFunctionCode", f"{arn}-ApiFunction-AB12", aws__PrincipalArn=deployer)


# ---- launcher roles


OURS = REQUEST | {"Tags": [{"Key": key, "Value": value} for key, value in GOVERNED.items()]}


def test_a_launcher_role_starts_the_queue_s_jobs_under_the_team_s_roles_alone() -> None:
    launcher = [FILES["launcher-role"]]
    assert may(launcher, "sagemaker", "CreateTrainingJob", OURS)
    assert not may(launcher, "sagemaker", "CreateTrainingJob", REQUEST), "without the stack's tag"
    others = f"arn:aws:iam::{ACCOUNT}:role/language-training"
    assert not may(launcher, "sagemaker", "CreateTrainingJob", OURS | {"RoleArn": others})
    to_lambda = {"iam__PassedToService": "lambda.amazonaws.com"}
    assert not allows(FILES["launcher-role"], "iam:PassRole", REQUEST["RoleArn"], **to_lambda)
    for operation in ("StopTrainingJob", "DeleteTrainingJob", "DescribeTrainingJob"):
        assert not may(launcher, "sagemaker", operation, {"TrainingJobName": "job1"}, tags=GOVERNED)
    assert not may(launcher, "sagemaker", "AddTags", {"ResourceArn": JOB, "Tags": OURS["Tags"]})


@pytest.mark.parametrize(
    ("changed", "may_be"),
    [
        pytest.param({}, True, id="as the stack asks"),
        pytest.param({TAG_TEAM: "language"}, False, id="for another team"),
        pytest.param({TAG_STACK: "other"}, False, id="by another stack"),
        pytest.param({TAG_TEAM: None}, False, id="without the team"),
        pytest.param({"role": "admin"}, False, id="with a tag more"),
    ],
)
def test_a_launcher_role_is_assumed_for_its_team_by_its_stack(
    changed: dict[str, str | None], *, may_be: bool
) -> None:
    (statement,) = FILES["launcher-role-trust"]["Statement"]
    assert statement["Principal"] == {"AWS": f"arn:aws:iam::{ACCOUNT}:role/SCHEDULE_FUNCTION_ROLE"}
    role = f"arn:aws:iam::{ACCOUNT}:role/trainmaster-launcher-vision"
    rights = {key: part for key, part in statement.items() if key != "Principal"} | {"Resource": role}
    tags = {TAG_TEAM: "vision", TAG_STACK: "trainmaster"} | changed
    listed = [{"Key": key, "Value": value} for key, value in tags.items() if value is not None]
    asked = {"RoleArn": role, "RoleSessionName": "trainmaster-vision", "Tags": listed}
    assert may([{"Statement": [rights]}], "sts", "AssumeRole", asked) is may_be


def test_in_an_organisation_launcher_roles_start_and_tag_jobs_and_stop_none() -> None:
    launcher = f"arn:aws:iam::{ACCOUNT}:role/trainmaster-launcher-vision"
    assert may(ORGANISATION, "sagemaker", "CreateTrainingJob", OURS, by=launcher)
    named = {"TrainingJobName": "job1"}
    assert not may(ORGANISATION, "sagemaker", "StopTrainingJob", named, tags=GOVERNED, by=launcher)


# ---- shells and training roles


def test_shells_are_for_containers_of_jobs_with_the_team_s_prefix() -> None:
    key = "ssm:resourceTag/aws:ssmmessages:target-id"
    session = f"arn:aws:ssm:{REGION}:{ACCOUNT}:session/ann-0123"
    for target, may_be in {
        "sagemaker-training-job:vision-7_algo-1": True,
        "sagemaker-training-job:language-7_algo-1": False,
        "i-0123456789abcdef0": False,
    }.items():
        for action in ("ssm:StartSession", "ssm:TerminateSession", "ssm:ResumeSession"):
            found = decide(parse_policy(FILES["ssh-user"]), action, session, normalized({key: target}))
            assert (found == "allowed") is may_be, (action, target)


def test_ports_are_forwarded_by_one_document_and_only_to_what_a_shell_may_reach() -> None:
    policy = parse_policy(FILES["ssh-user"])
    documents = f"arn:aws:ssm:{REGION}::document"
    for document, may_be in {
        "AWS-StartPortForwardingSession": True,
        "AWS-StartPortForwardingSessionToRemoteHost": False,
        "AWS-RunShellScript": False,
    }.items():
        found = decide(policy, "ssm:StartSession", f"{documents}/{document}", normalized({}))
        assert (found == "allowed") is may_be, document
    instance = f"arn:aws:ec2:{REGION}:{ACCOUNT}:instance/i-0123456789abcdef0"
    assert decide(policy, "ssm:StartSession", instance, normalized({})) != "allowed"


def test_a_training_role_has_what_remote_debugging_and_checkpoints_need_and_no_sagemaker() -> None:
    role = FILES["training-role"]
    assert all(allows(role, f"ssmmessages:{one}", "*") for one in MESSAGES)
    for action in ("s3:PutObject", "s3:DeleteObject", "s3:GetObject"):
        assert allows(role, action, "arn:aws:s3:::CHECKPOINT_BUCKET/job1/status.json")
    assert not allows(role, "s3:PutObject", "arn:aws:s3:::DATA_BUCKET/train.bin")
    services = {action.partition(":")[0] for action in actions_of(role)}
    assert services == {"s3", "ecr", "logs", "cloudwatch", "ssmmessages", "ec2"}


def test_a_training_role_reads_data_pulls_images_and_counts_in_sagemaker_s_name_alone() -> None:
    role, images = FILES["training-role"], "arn:aws:ecr:eu-west-1:763104351884:repository/pytorch-training"
    assert allows(role, "s3:GetObject", "arn:aws:s3:::DATA_BUCKET/train.bin")
    assert allows(role, "s3:ListBucket", "arn:aws:s3:::DATA_BUCKET")
    assert allows(role, "ecr:GetAuthorizationToken", "*")
    assert allows(role, "ecr:BatchGetImage", images)
    for namespace, may_be in {"/aws/sagemaker/TrainingJobs": True, "trainmaster": False}.items():
        assert allows(role, "cloudwatch:PutMetricData", "*", cloudwatch__namespace=namespace) is may_be


def test_a_training_role_is_for_sagemaker_in_the_own_account_alone() -> None:
    (statement,) = FILES["training-role-trust"]["Statement"]
    assert statement["Principal"] == {"Service": "sagemaker.amazonaws.com"}
    assert statement["Condition"]["StringEquals"] == {"aws:SourceAccount": ACCOUNT}
    (pattern,) = [statement["Condition"]["ArnLike"]["aws:SourceArn"]]
    assert like(JOB, pattern)
