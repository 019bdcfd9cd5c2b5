"""The stack of template.yaml on the twin: who gets in, what is deployed, and one job from end to end."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from tests.integration.local.running_twin import POLICY, RunningTwin, eventually, running_twin
from tests.markdown import text_of

LAUNCHER = "arn:aws:iam::123456789012:role/trainmaster-launcher-vision"


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningTwin]:
    parameters = {"LauncherRoleArns": LAUNCHER}
    with running_twin(
        tmp_path_factory.mktemp("twin"), policy=POLICY, speed=600.0, parameters=parameters
    ) as twin:
        yield twin


def submission(twin: RunningTwin, name: str, *command: str) -> dict[str, Any]:
    ready = twin.ready
    return {
        "TrainingJobName": name,
        "RoleArn": ready.role_arn,
        "AlgorithmSpecification": {
            "TrainingInputMode": "File",
            "TrainingImage": f"{ready.account_id}.dkr.ecr.{ready.region}.amazonaws.com/any:1",
            "ContainerEntrypoint": list(command or ("true",)),
        },
        "OutputDataConfig": {"S3OutputPath": f"s3://{ready.bucket}/out"},
        "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1},
        "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
    }


def calls_of(twin: RunningTwin, session: str) -> list[dict[str, Any]]:
    return [line for line in twin.journal() if (line.get("principal") or "").endswith(f"/{session}")]


def state_of(twin: RunningTwin, name: str) -> str:
    return str(twin.api("GET", f"/jobs/{name}").json["state"])


def test_a_job_is_queued_started_by_schedule_run_and_completed(twin: RunningTwin) -> None:
    answer = twin.api("POST", "/add-job", submission(twin, "end-to-end"))
    assert answer.status == 201, answer.body
    assert eventually(lambda: state_of(twin, "end-to-end") == "completed")
    (created,) = [
        line
        for line in twin.journal()
        if line.get("operation") == "CreateTrainingJob" and line["params"]["TrainingJobName"] == "end-to-end"
    ]
    account = twin.ready.account_id
    role = "trainmaster-ScheduleFunctionRole"
    assert created["principal"] == f"arn:aws:sts::{account}:assumed-role/{role}/schedule"
    assert created["error_code"] is None
    listed = twin.control("GET", "/training-jobs").json["training_jobs"]
    assert "end-to-end" in json.dumps(listed)


def waits_for(twin: RunningTwin, name: str) -> dict[str, Any]:
    return dict(twin.api("GET", f"/jobs/{name}").json["waiting"] or {})


def is_refused(twin: RunningTwin, name: str) -> bool:
    return bool(waits_for(twin, name).get("code") == "refused")


def is_completed(twin: RunningTwin, name: str) -> bool:
    return state_of(twin, name) == "completed"


def started_by(twin: RunningTwin, name: str) -> list[tuple[str, str | None]]:
    """Principal and error of each CreateTrainingJob."""
    return [
        (line["principal"], line["error_code"])
        for line in twin.journal()
        if line.get("operation") == "CreateTrainingJob" and line["params"]["TrainingJobName"] == name
    ]


def launcher_role(twin: RunningTwin) -> str:
    """As docs/guides/iam has it, with the rights of the one training role of the twin."""
    account, name = twin.ready.account_id, LAUNCHER.rpartition("/")[2]
    text = text_of("docs/guides/iam/launcher-role.json").replace("111122223333", account)
    rights = text.replace("vision-training", twin.ready.role_arn.rpartition("/")[2])
    iam = twin.client("iam")
    trust = text_of("docs/guides/iam/launcher-role-trust.json").replace("111122223333", account)
    trust = trust.replace("SCHEDULE_FUNCTION_ROLE", "trainmaster-ScheduleFunctionRole")
    iam.create_role(RoleName=name, AssumeRolePolicyDocument=trust)
    iam.put_role_policy(RoleName=name, PolicyName="launcher", PolicyDocument=rights)
    return f"arn:aws:sts::{account}:assumed-role/{name}/trainmaster-vision"


def test_a_launcher_role_starts_its_team_s_jobs_under_the_team_s_role_and_no_other(twin: RunningTwin) -> None:
    session = launcher_role(twin)
    account = twin.ready.account_id
    team = {
        "name": "vision",
        "principals": [f"arn:aws:iam::{account}:user/local-admin"],
        "roles": "any",
        "launcher_role": LAUNCHER,
    }
    assert twin.api("PUT", "/policy", POLICY | {"teams": [team]}).status == 200
    others = submission(twin, "under-another-role") | {"RoleArn": f"arn:aws:iam::{account}:role/language"}
    for request in (submission(twin, "by-its-launcher"), others):
        assert twin.api("POST", "/add-job", request).status == 201
    assert eventually(lambda: state_of(twin, "by-its-launcher") == "completed")
    assert started_by(twin, "by-its-launcher") == [(session, None)]
    assert eventually(lambda: waits_for(twin, "under-another-role").get("code") == "refused")
    assert set(started_by(twin, "under-another-role")) == {(session, "AccessDeniedException")}
    assert "iam:PassRole" in waits_for(twin, "under-another-role")["message"]
    twin.api("DELETE", "/jobs/under-another-role")
    assumed, *_ = [one for one in calls_of(twin, "schedule") if one["operation"] == "AssumeRole"]
    assert {tag["Key"]: tag["Value"] for tag in assumed["params"]["Tags"]} == {
        "trainmaster:team": "vision",
        "trainmaster:stack": "trainmaster",
    }


def test_a_launcher_role_that_the_stack_may_not_assume_is_named_to_its_team(twin: RunningTwin) -> None:
    unlisted = f"{LAUNCHER}-2"
    team = {"name": "vision", "principals": [f"arn:aws:iam::{twin.ready.account_id}:user/*a*"]}
    policy = POLICY | {"teams": [team | {"roles": "any", "launcher_role": unlisted}]}
    assert twin.api("PUT", "/policy", policy).status == 200
    assert twin.api("POST", "/add-job", submission(twin, "held-up")).status == 201

    def waits_for() -> str:
        return str((twin.api("GET", "/jobs/held-up").json["waiting"] or {}).get("message"))

    assert eventually(lambda: unlisted in waits_for())
    assert "LauncherRoleArns" in waits_for()
    assert started_by(twin, "held-up") == []
    assert twin.api("PUT", "/policy", POLICY).status in {200, 409}
    twin.api("DELETE", "/jobs/held-up")
    assert twin.api("PUT", "/policy", POLICY).status == 200


def test_jobs_that_the_twin_cannot_run_are_queued_as_on_aws_and_wait_with_what_would_run(
    twin: RunningTwin,
) -> None:
    """One after the other: three refused jobs in a row would say that something is wrong for all of them."""
    named = {
        "manifest": "InputDataConfig[0].DataSource.S3DataSource.S3DataType: the twin reads S3Prefix, not",
        "fsx": "InputDataConfig[0].DataSource.FileSystemDataSource: the twin reads channels from S3 alone",
        "pipe": "InputDataConfig[0].InputMode: the twin streams no data (Pipe); File and FastFile run",
        "algorithm": "AlgorithmSpecification.AlgorithmName: the twin has no algorithms of its own; give",
    }
    for name, changes in not_for_the_twin(twin).items():
        assert twin.api("POST", "/add-job", submission(twin, name) | changes).status == 201

        assert eventually(partial(is_refused, twin, name))
        assert named[name] in waits_for(twin, name)["message"]
        twin.api("DELETE", f"/jobs/{name}")
        assert twin.api("POST", "/add-job", submission(twin, f"after-{name}")).status == 201
        assert eventually(partial(is_completed, twin, f"after-{name}"))
    assert {name: started_by(twin, name)[0][1] for name in named} == dict.fromkeys(
        named, "ValidationException"
    )


def not_for_the_twin(twin: RunningTwin) -> dict[str, dict[str, Any]]:
    """By a name, what is changed of a request."""

    def channel(**changes: Any) -> dict[str, Any]:
        source = {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": f"s3://{twin.ready.bucket}/any"}}
        return {"InputDataConfig": [{"ChannelName": "train", "DataSource": source} | changes]}

    manifest = {"S3DataType": "ManifestFile", "S3Uri": f"s3://{twin.ready.bucket}/manifest"}
    fsx = {
        "FileSystemId": "fs-0123456789a",
        "FileSystemAccessMode": "ro",
        "FileSystemType": "FSxLustre",
        "DirectoryPath": "/fsx",
    }
    vpc = {"SecurityGroupIds": ["sg-0123456789"], "Subnets": ["subnet-0123456789"]}
    algorithm = {"TrainingInputMode": "File", "AlgorithmName": "xgboost"}
    return {
        "manifest": channel(DataSource={"S3DataSource": manifest}),
        "fsx": channel(DataSource={"FileSystemDataSource": fsx}) | {"VpcConfig": vpc},
        "pipe": channel(InputMode="Pipe"),
        "algorithm": {"AlgorithmSpecification": algorithm},
    }


def test_jobs_that_come_at_once_are_all_taken_and_never_more_run_than_fit(twin: RunningTwin) -> None:
    names = [f"many-{number}" for number in range(8)]

    def submit(name: str) -> int:
        return twin.api("POST", "/add-job", submission(twin, name, "sleep", "0.5")).status

    with ThreadPoolExecutor(8) as threads:
        statuses = list(threads.map(submit, names))
    assert statuses == [201] * 8
    assert eventually(lambda: all(state_of(twin, name) == "completed" for name in names))
    running, most = 0, 0
    for line in twin.journal():
        if line["kind"] == "process" and line["training_job"].startswith("many-"):
            running += {"start": 1, "exit": -1}.get(line["event"], 0)
            most = max(most, running)
    assert most == 2


def test_the_caller_is_the_one_who_signed(twin: RunningTwin) -> None:
    twin.api("GET", "/pools")
    last = [line for line in twin.journal() if line.get("service") == "execute-api"][-1]
    assert last["operation"] == "GET /pools"
    assert last["principal"] == f"arn:aws:iam::{twin.ready.account_id}:user/local-admin"


def test_g2b_a_role_made_without_the_right_to_invoke_is_refused(twin: RunningTwin) -> None:
    iam = twin.client("iam")
    trust = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": "*", "Action": "sts:*"}]}
    iam.create_role(RoleName="nobody", AssumeRolePolicyDocument=json.dumps(trust))
    keys = twin.session_of("nobody")
    before = len(calls_of(twin, "api"))
    answer = twin.api("GET", "/pools", keys=keys)
    assert answer.status == 403
    assert "is not authorized to perform: execute-api:Invoke" in answer.json["message"]
    allow = {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": "*"}],
    }
    assert len(calls_of(twin, "api")) == before
    iam.put_role_policy(RoleName="nobody", PolicyName="p", PolicyDocument=json.dumps(allow))
    assert twin.api("GET", "/pools", keys=keys).status != 403


def test_the_functions_own_roles_may_not_call_the_api(twin: RunningTwin) -> None:
    keys = twin.session_of("trainmaster-ApiFunctionRole")
    assert twin.api("GET", "/pools", keys=keys).status == 403


def test_any_other_role_counts_as_allowed(twin: RunningTwin) -> None:
    keys = twin.session_of("data-scientist")
    assert twin.api("GET", "/pools", keys=keys).status == 200


def test_g3_another_vpc_endpoint_is_refused(twin: RunningTwin) -> None:
    answer = twin.api("GET", "/pools", headers={"x-twin-vpce": "vpce-other"})
    assert answer.status == 403
    assert answer.json["message"].endswith("with an explicit deny")


@pytest.mark.parametrize("path", ["/", "/nothing", "/jobs/", "//jobs", "/jobs/a/b", "/policy/other"])
def test_an_unknown_route_is_refused_as_aws_does(twin: RunningTwin, path: str) -> None:
    answer = twin.api("GET", path)
    assert (answer.status, answer.json) == (403, {"message": "Missing Authentication Token"})


def test_g1_without_a_signature_nobody_gets_in(twin: RunningTwin) -> None:
    before = len(calls_of(twin, "api"))
    body = json.dumps(submission(twin, "unsigned")).encode()
    answer = twin.send("POST", f"{twin.ready.api_url}/add-job", body, {})
    assert answer.status == 403
    assert twin.journal()[-1]["principal"] is None
    assert len(calls_of(twin, "api")) == before


def test_a_body_over_ten_megabytes_is_refused_by_the_gateway(twin: RunningTwin) -> None:
    answer = twin.api("POST", "/add-job", b"x" * (10 * 1024 * 1024 + 1))
    assert answer.status == 413


def test_the_api_is_found_by_the_parameter_of_the_stack(twin: RunningTwin) -> None:
    value = twin.client("ssm").get_parameter(Name="/trainmaster/api-url")["Parameter"]["Value"]
    assert value == twin.ready.api_url


def test_every_queue_topic_key_and_alarm_of_the_template_is_there(twin: RunningTwin) -> None:
    queues = twin.client("sqs").list_queues()["QueueUrls"]
    assert len(queues) == 5
    doorbell = next(url for url in queues if url.endswith("trainmaster-DoorbellQueue"))
    attributes = twin.client("sqs").get_queue_attributes(QueueUrl=doorbell, AttributeNames=["All"])
    redrive = json.loads(attributes["Attributes"]["RedrivePolicy"])
    assert redrive["deadLetterTargetArn"].endswith(":trainmaster-DoorbellDeadLetterQueue")
    assert redrive["maxReceiveCount"] == 5
    assert attributes["Attributes"]["VisibilityTimeout"] == "720"
    assert len(twin.client("sns").list_topics()["Topics"]) == 2
    alarms = twin.client("cloudwatch").describe_alarms()["MetricAlarms"]
    assert {alarm["AlarmName"] for alarm in alarms} >= {"operator-trainmaster-api-errors"}
    groups = twin.client("logs").describe_log_groups(logGroupNamePrefix="/aws/lambda/")["logGroups"]
    assert len(groups) == 6
    table = twin.client("dynamodb").describe_table(TableName="trainmaster-Table")["Table"]
    assert [index["IndexName"] for index in table["GlobalSecondaryIndexes"]] == ["by_team"]
    assert table["SSEDescription"]["SSEType"] == "KMS"


@pytest.mark.thorough
def test_an_accepted_policy_is_remembered_for_the_next_twin(twin: RunningTwin) -> None:
    changed = {"version": 1, "pools": [{"name": "cpu", "capacity": {"ml.m5.large": 2, "ml.c5.large": 1}}]}
    assert twin.api("PUT", "/policy", {"version": 9}).status == 422
    remembered = twin.folder / "state" / "policy.json"
    assert json.loads(remembered.read_text()) == POLICY
    assert twin.api("PUT", "/policy", changed).status == 200
    assert json.loads(remembered.read_text()) == changed


def test_the_queue_s_widget_reads_the_table_with_its_own_role_alone(twin: RunningTwin) -> None:
    answer = twin.control("POST", "/invoke", {"function": "queue_widget", "event": {}}).json
    assert answer["failed"] is False, answer
    assert "<h3>cpu</h3>" in answer["answer"]
    calls = [line for line in calls_of(twin, "queue_widget") if line["service"] != "logs"]
    assert {(line["service"], line["operation"]) for line in calls} == {
        ("dynamodb", "GetItem"),
        ("dynamodb", "Query"),
    }
    assert {line["error_code"] for line in calls} == {None}
    unknown = twin.control("POST", "/invoke", {"function": "nobody", "event": {}})
    assert (unknown.status, unknown.json["field"]) == (400, "function")
