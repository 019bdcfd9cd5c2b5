"""O17 through the deployed stack: a role that may not put metrics, a policy that does not mention idle."""

import json
from collections.abc import Iterator

import pytest

from tests.e2e.plane import Plane, keys_of, running_plane

pytestmark = pytest.mark.thorough

ACCOUNT = "123456789012"
GPU_TYPE = "ml.g5.xlarge"
POLICY = {"version": 1, "pools": [{"name": "gpu", "capacity": {GPU_TYPE: 4}}]}
WAITING = ["sh", "-c", "while :; do sleep 0.2; done"]
TRUST = {"Effect": "Allow", "Principal": {"Service": "sagemaker.amazonaws.com"}, "Action": "sts:AssumeRole"}
MAY_PUT: dict[str, object] = {
    "Effect": "Allow",
    "Action": "cloudwatch:PutMetricData",
    "Resource": "*",
    "Condition": {"StringEquals": {"cloudwatch:namespace": "/aws/sagemaker/TrainingJobs"}},
}
OTHERWISE = {"Effect": "Allow", "Action": ["logs:*", "s3:*"], "Resource": "*"}


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    roles = f"TrainingRoleArns=arn:aws:iam::{ACCOUNT}:role/train-*"
    folder = tmp_path_factory.mktemp("metrics")
    with running_plane(folder, "--clock", "manual", "--parameter", roles, policy=POLICY) as running:
        assert running.twin.ready["account_id"] == ACCOUNT
        yield running


def submit(plane: Plane, name: str, *statements: dict[str, object]) -> str:
    """A job under a role of its own; answers its ARN."""
    role = f"train-{name}"
    iam = plane.client("iam")
    trust = json.dumps({"Version": "2012-10-17", "Statement": [TRUST]})
    arn: str = iam.create_role(RoleName=role, AssumeRolePolicyDocument=trust)["Role"]["Arn"]
    rights = json.dumps({"Version": "2012-10-17", "Statement": [OTHERWISE, *statements]})
    iam.put_role_policy(RoleName=role, PolicyName="rights", PolicyDocument=rights)
    instances = {"InstanceType": GPU_TYPE, "InstanceCount": 1, "VolumeSizeInGB": 1}
    day = {"MaxRuntimeInSeconds": 86400}
    plane.add(plane.request(name, WAITING, RoleArn=arn, ResourceConfig=instances, StoppingCondition=day))
    return arn


def test_O17_a_role_without_the_right_is_named_and_one_with_it_is_watched(plane: Plane) -> None:
    silent = submit(plane, "silent")
    submit(plane, "speaks", MAY_PUT)
    plane.clock(30)
    plane.clock(18 * 60)
    (attempt,) = plane.job("silent")["attempts"]
    assert attempt["unguarded"]["code"] == "no-metrics"
    assert f"role {silent} lacks cloudwatch:PutMetricData" in attempt["unguarded"]["message"]
    (attempt,) = plane.job("speaks")["attempts"]
    assert attempt["unguarded"] is None
    asked = plane.calls("GetMetricData")
    assert {call["principal"].rpartition("/")[2] for call in asked} == {"reconcile"}
    assert 1 <= len(asked) <= 2, "once an attempt, all that is due in one call"


def test_O17_a_policy_that_does_not_mention_idle_warns_and_stops_nothing(plane: Plane) -> None:
    plane.control("/gpu", {"training_job": "speaks", "host": None, "percent": 0, "from_minute": None})
    plane.clock(60 * 60)
    job = plane.job("speaks")
    assert job["state"] == "running"
    (attempt,) = job["attempts"]
    assert attempt["idle_since"] is not None
    assert attempt["stop_due"] is None


def test_O17_reconcile_may_ask_for_metrics_and_put_none(plane: Plane) -> None:
    cloudwatch = plane.client("cloudwatch", keys_of(plane, "reconcile"))
    query = {
        "Id": "m0",
        "MetricStat": {
            "Metric": {"Namespace": "/aws/sagemaker/TrainingJobs", "MetricName": "GPUUtilization"},
            "Period": 300,
            "Stat": "SampleCount",
        },
    }
    span = {"StartTime": "2026-01-01T00:00:00Z", "EndTime": "2026-01-01T01:00:00Z"}
    assert cloudwatch.get_metric_data(MetricDataQueries=[query], **span)["MetricDataResults"]
    with pytest.raises(cloudwatch.exceptions.ClientError, match="AccessDenied"):
        cloudwatch.put_metric_data(Namespace="x", MetricData=[{"MetricName": "y", "Value": 1}])
