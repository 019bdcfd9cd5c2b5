"""What stands in the way of a shell in a container, and the command when nothing does."""

from typing import Any

import pytest
from trainmaster_client.cli.container_sessions import after_refusal, command, hosts, not_running, obstacles
from trainmaster_client.jobs.job_views import job_view

from tests.integration.client.fake_api import view

DESCRIPTION: dict[str, Any] = {
    "TrainingJobName": "job1-r1-abc123",
    "TrainingJobStatus": "InProgress",
    "SecondaryStatus": "Training",
    "RemoteDebugConfig": {"EnableRemoteDebug": True},
    "EnableNetworkIsolation": False,
    "ResourceConfig": {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 2},
    "RoleArn": "arn:aws:iam::111122223333:role/vision-training",
}


def test_a_training_job_that_trains_with_remote_debugging_is_open() -> None:
    assert list(obstacles(DESCRIPTION, 2)) == []
    assert command("job1-r1-abc123", 2, "eu-west-1") == [
        "aws",
        "ssm",
        "start-session",
        "--target",
        "sagemaker-training-job:job1-r1-abc123_algo-2",
        "--region",
        "eu-west-1",
    ]
    assert command("job1", 1, None)[-1] == "sagemaker-training-job:job1_algo-1"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param({"TrainingJobStatus": "Failed"}, "the training job has ended: it is Failed", id="ended"),
        pytest.param(
            {"SecondaryStatus": "Downloading"}, "it is Downloading, try again", id="not training yet"
        ),
        pytest.param(
            {"RemoteDebugConfig": {"EnableRemoteDebug": False}}, "remote debugging is off", id="off"
        ),
        pytest.param(
            {"RemoteDebugConfig": None}, "enable_remote_debug=True of an estimator", id="never said"
        ),
        pytest.param({"EnableNetworkIsolation": True}, "EnableNetworkIsolation", id="isolated"),
        pytest.param(
            {"ResourceConfig": {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 1}},
            "it has no host 2: there are 1, counted from 1",
            id="no such host",
        ),
    ],
)
def test_one_thing_in_the_way_is_named(changes: dict[str, Any], said: str) -> None:
    (found,) = obstacles(DESCRIPTION | changes, 2)
    assert said in found


def test_all_that_stands_in_the_way_is_named_at_once() -> None:
    assert len(list(obstacles({"TrainingJobStatus": "InProgress", "SecondaryStatus": "Starting"}, 3))) == 3


def test_hosts_of_instance_groups_are_added_up() -> None:
    groups = [{"InstanceCount": 2}, {"InstanceCount": 3}]
    assert hosts({"ResourceConfig": {"InstanceGroups": groups}}) == 5


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        pytest.param(
            {}, "job1 does not run yet. Waiting, position 3 in pool p5 - capacity: needs", id="waits"
        ),
        pytest.param({"state": "completed"}, "job1 has ended: it is completed", id="ended"),
    ],
)
def test_a_job_without_a_container_says_why(fields: dict[str, Any], said: str) -> None:
    assert (not_running(job_view(view(**fields))) or "").startswith(said)


@pytest.mark.parametrize("state", ["starting", "running", "preempting", "stopping"])
def test_a_live_job_may_have_one(state: str) -> None:
    assert not_running(job_view(view(state=state))) is None


def test_a_refusal_is_explained_by_its_codes() -> None:
    """Of a VPC only where the job has one."""
    lines = list(after_refusal("job1", 1, DESCRIPTION))
    assert "target-id = sagemaker-training-job:job1_algo-1" in lines[1]
    assert "arn:aws:iam::111122223333:role/vision-training needs ssmmessages:CreateControlChannel" in lines[3]
    assert not any("VPC endpoint" in line for line in lines)
    inside = after_refusal("job1", 1, DESCRIPTION | {"VpcConfig": {"Subnets": ["subnet-a"]}})
    assert any("ssmmessages: a VPC endpoint" in line for line in inside)
