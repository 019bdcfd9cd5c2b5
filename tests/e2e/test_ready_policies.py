"""Somebody with docs/guides/iam/user.json on the twin: through the queue, and not around it."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from botocore.exceptions import ClientError
from trainmaster_client.cli import main

from tests.e2e.plane import Document, Plane, pool, python, running_plane, tags, until_exists
from tests.e2e.signing import Keys

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
FULL_ACCESS = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": ["sagemaker:*", "iam:PassRole"], "Resource": "*"}],
}
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def plane(tmp_path_factory) -> Iterator[Plane]:
    with running_plane(tmp_path_factory.mktemp("policies"), policy=pool(1)) as running:
        yield running


@pytest.fixture(scope="module")
def ann(plane) -> Keys:
    """With the user's policy beside what AmazonSageMakerFullAccess says of training."""
    iam, account = plane.client("iam"), plane.twin.ready["account_id"]
    text = (ROOT / "docs/guides/iam/user.json").read_text()
    policy = text.replace("111122223333", account).replace("API_ID", "*")
    iam.create_role(RoleName="vision-ann", AssumeRolePolicyDocument="{}")
    for name, document in (("user", policy), ("full", json.dumps(FULL_ACCESS))):
        iam.put_role_policy(RoleName="vision-ann", PolicyName=name, PolicyDocument=document)
    arn = f"arn:aws:iam::{account}:role/vision-ann"
    made = plane.client("sts").assume_role(RoleArn=arn, RoleSessionName="ann")["Credentials"]
    return Keys(
        access_key_id=made["AccessKeyId"],
        secret_access_key=made["SecretAccessKey"],
        session_token=made["SessionToken"],
    )


@pytest.fixture
def trainmaster(plane, ann, monkeypatch, capsys) -> Command:
    """The command line as ann, who finds the API by its SSM parameter."""
    ready = plane.twin.ready
    monkeypatch.delenv("TRAINMASTER_API_URL", raising=False)
    for name, value in {
        "AWS_ENDPOINT_URL": ready["endpoint_url"],
        "AWS_DEFAULT_REGION": ready["region"],
        "AWS_ACCESS_KEY_ID": ann.access_key_id,
        "AWS_SECRET_ACCESS_KEY": ann.secret_access_key,
        "AWS_SESSION_TOKEN": str(ann.session_token),
    }.items():
        monkeypatch.setenv(name, value)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["trainmaster", *arguments])
        with pytest.raises(SystemExit) as exited:
            main()
        captured = capsys.readouterr()
        return int(exited.value.code or 0), captured.out, captured.err

    return run


def written(folder: Path, request: Document) -> str:
    path = folder / "job.json"
    path.write_text(json.dumps(request))
    return str(path)


def assert_denied(operation: Callable[..., object], **params: object) -> None:
    with pytest.raises(ClientError, match="with an explicit deny in an identity-based policy") as refused:
        operation(**params)
    assert refused.value.response["Error"]["Code"] == "AccessDeniedException"


def test_what_is_denied_directly_is_done_by_the_queue(plane, ann, tmp_path) -> None:
    sagemaker, file = plane.client("sagemaker", ann), tmp_path / "may-end"
    request = plane.request("governed", until_exists(file))
    assert_denied(sagemaker.create_training_job, **request)
    plane.add(request, keys=ann)
    plane.await_state("governed", "running")
    plane.await_status("governed", "Training")
    assert_denied(sagemaker.stop_training_job, TrainingJobName="governed")
    arn = plane.described("governed")["TrainingJobArn"]
    forged = tags(**{"trainmaster:stack": "another"})
    assert_denied(sagemaker.add_tags, ResourceArn=arn, Tags=forged)
    assert_denied(sagemaker.delete_tags, ResourceArn=arn, TagKeys=["trainmaster:stack"])
    assert plane.described("governed")["TrainingJobStatus"] == "InProgress"
    assert plane.call("DELETE", "/jobs/governed", keys=ann).status == 202
    plane.await_state("governed", "stopped")


def test_a_job_that_the_queue_does_not_govern_can_be_stopped(plane, ann, tmp_path) -> None:
    plane.client("sagemaker").create_training_job(**plane.request("free", until_exists(tmp_path / "x")))
    plane.client("sagemaker", ann).stop_training_job(TrainingJobName="free")
    plane.await_status("free", "Stopped")


def test_the_policy_is_for_admins_at_the_gateway_already(plane, ann) -> None:
    answer = plane.call("PUT", "/policy/paused", {"paused": True}, keys=ann)
    assert (answer.status, "explicit deny" in answer.document["message"].lower()) == (403, True)


def test_advice_is_what_the_scheduler_itself_would_do(plane, trainmaster, tmp_path) -> None:
    request = plane.request("advised", ["true"], CheckpointConfig={"S3Uri": "s3://b/c"})
    file, too_large = written(tmp_path, request), ("--shape", "ml.m5.xlarge=9")
    code, out, err = trainmaster("advise", file, *too_large, "--by", "cost", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert [(one["shape"], one["valid"], one["usd_per_hour"]) for one in found["shapes"]] == [
        ("ml.m5.xlarge=1:spot", True, 0.23),
        ("ml.m5.xlarge=1", True, 0.23),
        ("ml.m5.xlarge=9", False, None),
    ]
    assert [one["rule"] for one in found["shapes"][2]["violations"]] == ["never-fits"]
    starts = [one["estimated_start"] for one in found["shapes"][:2]]
    assert all(start["p50"] <= start["p90"] for start in starts)
    assert found["shapes"][0]["placement_score"]["unknown"]
    assert found["tag"]["Value"] == "ml.m5.xlarge=1:spot ml.m5.xlarge=1"


def test_an_earlier_run_says_what_a_dollar_gets_and_where_its_board_is(plane, trainmaster, tmp_path) -> None:
    """With the user's own rights: DescribeTrainingJob has the last value of the metric, and the S3 path."""
    request = plane.request(
        "measured",
        python("print('tok_s=1150.0', flush=True)"),
        TensorBoardOutputConfig={"S3OutputPath": "s3://bucket/boards"},
    )
    metric = {"Name": "train:tok_s", "Regex": "tok_s=([0-9.]+)"}
    request["AlgorithmSpecification"]["MetricDefinitions"] = [metric]
    plane.add(request)
    plane.await_state("measured", "completed")
    file = written(tmp_path, plane.request("again", ["true"]))
    code, out, err = trainmaster("advise", file, "--by", "work", "--measured", "measured")
    assert (code, err) == (0, "")
    (line,) = (line.strip() for line in out.splitlines() if "measured on" in line)
    assert line == "measured on 1 run: train:tok_s 1,150, 1.8e+07 per USD"  # 0.23 USD an hour
    code, out, _ = trainmaster("tensorboard", "measured", "--print")
    folder = "s3://bucket/boards/measured/tensorboard-output"
    assert (code, out) == (0, f"tensorboard --logdir_spec attempt-0:{folder} --port 6006\n")


def test_a_shell_is_for_a_job_that_trains_and_asked_for_it(plane, trainmaster, tmp_path) -> None:
    file = tmp_path / "may-end"
    debug = {"RemoteDebugConfig": {"EnableRemoteDebug": True}}
    plane.add(plane.request("open", until_exists(file), **debug))
    plane.await_state("open", "running")
    plane.await_status("open", "Training")
    code, out, _ = trainmaster("ssh", "open", "--print")
    region = plane.twin.ready["region"]
    target = "sagemaker-training-job:open_algo-1"
    assert (code, out) == (0, f"aws ssm start-session --target {target} --region {region}\n")
    code, out, _ = trainmaster("forward", "open", "8000:6006", "--print")
    assert code == 0
    assert f"--target {target} --document-name AWS-StartPortForwardingSession" in out
    plane.add(plane.request("closed", ["true"]))
    code, _, err = trainmaster("ssh", "closed", "--print")
    assert (code, "closed does not run yet" in err) == (1, True)
    file.touch()
    plane.await_state("open", "completed")
