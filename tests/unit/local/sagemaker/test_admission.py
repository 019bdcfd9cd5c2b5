"""What CreateTrainingJob refuses at once beyond its shape."""

from datetime import timedelta
from typing import Any

import pytest

from local.sagemaker.admission import Admission
from local.sagemaker.plan_book import PlanBook
from local.sagemaker.training_plans import TrainingPlan, Window
from local.wire import AwsError
from tests.integration.local.sagemaker_world import ACCOUNT, BUCKET, REGION, Buckets, manual_clock, request

PLAN = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-plan/spring"


@pytest.fixture
def admission() -> Admission:
    store = Buckets(BUCKET)
    store.write(BUCKET, "data/train/a", b"")
    clock = manual_clock()
    plans = PlanBook(clock, arn_prefix=PLAN.removesuffix("spring"))
    now = clock.now()
    for name, begins in (("spring", timedelta(hours=1)), ("winter", -timedelta(hours=2))):
        plans.add(
            TrainingPlan(
                name=name,
                arn=plans.arn_of(name),
                instance_type="ml.p5.48xlarge",
                instances=2,
                windows=(Window(begin=now + begins, end=now + begins + timedelta(hours=1)),),
                fee_usd=100.0,
                paid_at=now,
            )
        )
    return Admission(store=store, account_id=ACCOUNT, region=REGION, plans=plans, clock=clock)


def channel(**changes: Any) -> dict[str, Any]:
    source = {"S3DataType": "S3Prefix", "S3Uri": f"s3://{BUCKET}/data/train"}
    return {"ChannelName": "train", "DataSource": {"S3DataSource": source}} | changes


def manifest() -> dict[str, Any]:
    source = {"S3DataType": "ManifestFile", "S3Uri": f"s3://{BUCKET}/data/train"}
    return channel(DataSource={"S3DataSource": source})


def at(uri: str) -> dict[str, Any]:
    return channel(DataSource={"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": uri}})


def algorithm(**changes: Any) -> dict[str, Any]:
    return {"AlgorithmSpecification": request("job")["AlgorithmSpecification"] | changes}


def resources(**changes: Any) -> dict[str, Any]:
    return {"ResourceConfig": request("job")["ResourceConfig"] | changes}


def on_plan(arn: str = PLAN, **changes: Any) -> dict[str, Any]:
    return resources(**({"InstanceType": "ml.p5.48xlarge", "TrainingPlanArn": arn} | changes))


def preferring(*preferences: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"ResourceConfig": {"InstancePreferences": list(preferences), "VolumeSizeInGB": 30} | more}


GROUP = {"InstanceType": "ml.m5.large", "InstanceCount": 1, "InstanceGroupName": "a"}
P5, P4 = {"InstanceType": "ml.p5.48xlarge"}, {"InstanceType": "ml.p4d.24xlarge"}
FSX = {"FileSystemId": "fs-0123456789a", "FileSystemType": "FSxLustre", "DirectoryPath": "/fsx"}
SPOT = {"EnableManagedSpotTraining": True}
SPOT_TIMES = SPOT | {"StoppingCondition": {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 60}}


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="the least"),
        pytest.param({"InputDataConfig": [channel()]}, id="a channel with data"),
        pytest.param({"ResourceConfig": {"InstanceGroups": [GROUP]}}, id="instance groups"),
        pytest.param(
            SPOT | {"StoppingCondition": {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 60}}, id="spot"
        ),
        pytest.param(resources(KeepAlivePeriodInSeconds=60), id="a warm pool on demand"),
        pytest.param(on_plan(), id="a training plan that is Scheduled"),
        pytest.param(preferring(P5, P4, InstanceCount=2), id="preferences with one count"),
        pytest.param(
            preferring(P5 | {"InstanceCount": 1}, P4 | {"InstanceCount": 2}), id="a count a preference"
        ),
        pytest.param(
            {"CheckpointConfig": {"S3Uri": f"s3://{BUCKET}/c", "LocalPath": "/ckpt"}}, id="local path"
        ),
        pytest.param(
            algorithm(
                TrainingImage="763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.13-cpu-py312"
            ),
            id="an image of AWS",
        ),
        pytest.param(
            algorithm(TrainingImage=f"{ACCOUNT}.dkr.ecr.us-east-1.amazonaws.com/a/b@sha256:{'0' * 64}"),
            id="an image by digest",
        ),
        pytest.param(
            algorithm(
                TrainingImage="registry.example/a",
                TrainingImageConfig={"TrainingRepositoryAccessMode": "Vpc"},
            ),
            id="an image of another registry in the VPC",
        ),
    ],
)
def test_it_admits(admission, changes):
    admission.admit(request("job") | changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        pytest.param(
            {"AlgorithmSpecification": None}, "AlgorithmSpecification is required", id="no algorithm"
        ),
        pytest.param(algorithm(AlgorithmName="a"), "not both", id="image and algorithm name"),
        pytest.param(algorithm(TrainingImage="training:1"), "Amazon ECR", id="an image of nowhere"),
        pytest.param(
            algorithm(TrainingImage="123456789012.dkr.ecr.us-east-1.amazonaws.com.evil.com/x"),
            "Amazon ECR",
            id="an image that only begins like ECR",
        ),
        pytest.param({"ResourceConfig": None}, "ResourceConfig is required", id="no resources"),
        pytest.param({"ResourceConfig": {"InstanceType": "ml.m5.large"}}, "InstanceCount", id="no count"),
        pytest.param(resources(InstanceCount=0), "InstanceCount must be at least 1", id="count 0"),
        pytest.param(resources(VolumeSizeInGB=0), "VolumeSizeInGB must be at least 1", id="volume 0"),
        pytest.param(resources(InstanceGroups=[GROUP]), "not both", id="groups and a type"),
        pytest.param(resources(InstancePreferences=[P5]), "and not both", id="preferences and a type"),
        pytest.param(preferring(P5, P4, InstanceGroups=[GROUP]), "and not both", id="preferences and groups"),
        pytest.param(preferring(P5, P4, P5, InstanceCount=1), "only once", id="a type preferred twice"),
        pytest.param(preferring(P5, P4), "either in every preference", id="preferences without a count"),
        pytest.param(
            preferring(P5 | {"InstanceCount": 1}, P4), "either in every", id="a count in one preference"
        ),
        pytest.param(
            preferring(P5 | {"InstanceCount": 1}, InstanceCount=1), "not in both", id="counts in both places"
        ),
        pytest.param(preferring(P5, InstanceCount=0), "at least 1", id="preferences with count 0"),
        pytest.param(
            preferring(P5 | {"TrainingPlanArns": ["a"]}, InstanceCount=1),
            "ResourceConfig.InstancePreferences.TrainingPlanArns: the twin has no plans a preference",
            id="a training plan",
        ),
        pytest.param(
            SPOT | preferring(P5, InstanceCount=1), "not for managed spot", id="preferences on spot"
        ),
        pytest.param(
            preferring(P5, InstanceCount=1, SelectedInstanceType="x"), "read-only", id="a selected type"
        ),
        pytest.param(SPOT, "Invalid MaxWaitTimeInSeconds", id="spot without a wait"),
        pytest.param(
            SPOT | {"StoppingCondition": {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 59}},
            "Invalid MaxWaitTimeInSeconds",
            id="spot that waits less than it runs",
        ),
        pytest.param(
            {"StoppingCondition": {"MaxWaitTimeInSeconds": 1}}, "managed spot", id="wait without spot"
        ),
        pytest.param(
            SPOT
            | resources(KeepAlivePeriodInSeconds=60)
            | {"StoppingCondition": {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 60}},
            "KeepAlivePeriodInSeconds",
            id="a warm pool on spot",
        ),
        pytest.param(
            {"RoleArn": "arn:aws:iam::999999999999:role/training"}, "Could not assume role", id="foreign role"
        ),
        pytest.param(
            {"OutputDataConfig": {"S3OutputPath": "s3://nowhere/a"}},
            "S3 bucket nowhere does not exist",
            id="output bucket",
        ),
        pytest.param(
            {"OutputDataConfig": {"S3OutputPath": "https://x/a"}}, "s3://", id="output that is not in S3"
        ),
        pytest.param(
            {"CheckpointConfig": {"S3Uri": "s3://nowhere/a"}},
            "S3 bucket nowhere does not exist",
            id="checkpoint bucket",
        ),
        pytest.param(
            {"CheckpointConfig": {"S3Uri": f"s3://{BUCKET}/a", "LocalPath": "../x"}},
            "absolute path",
            id="checkpoint path that leads out",
        ),
        pytest.param(
            {"InputDataConfig": [at(f"s3://{BUCKET}/none")]}, "No S3 objects found under S3 URL", id="no data"
        ),
        pytest.param(
            {"InputDataConfig": [at("s3://nowhere/none")]}, "No S3 objects found", id="no bucket of data"
        ),
        pytest.param(
            {"InputDataConfig": [channel(), channel(InputMode="Pipe")]},
            "InputDataConfig[1].InputMode: the twin streams no data (Pipe); File and FastFile run",
            id="a channel in pipe mode",
        ),
        pytest.param(
            {"InputDataConfig": [channel()]} | algorithm(TrainingInputMode="Pipe"),
            "AlgorithmSpecification.TrainingInputMode: the twin streams no data",
            id="pipe mode",
        ),
        pytest.param(
            {"InputDataConfig": [manifest()]},
            "[0].DataSource.S3DataSource.S3DataType: the twin reads S3Prefix, not ManifestFile",
            id="manifest file",
        ),
        pytest.param(
            {"InputDataConfig": [channel(DataSource={"FileSystemDataSource": FSX})]},
            ".FileSystemDataSource: the twin reads channels from S3 alone, not from FSxLustre; give",
            id="a file system",
        ),
        pytest.param(
            {"InputDataConfig": [channel(DataSource={"DatasetSource": {"DatasetArn": "arn:x"}})]},
            "not from DatasetSource",
            id="a data set",
        ),
        pytest.param(
            {"InputDataConfig": [channel(DataSource={})]}, "not None; give the prefix", id="no data source"
        ),
        pytest.param(
            on_plan(PLAN.replace("spring", "autumn")), "does not exist", id="a plan that does not exist"
        ),
        pytest.param(
            on_plan(PLAN.replace(ACCOUNT, "999999999999")), "does not exist", id="another account's plan"
        ),
        pytest.param(
            on_plan(PLAN.replace("spring", "winter")), "in status Expired", id="a plan that is over"
        ),
        pytest.param(
            on_plan(InstanceType="ml.p5e.48xlarge"),
            "instances of type ml.p5.48xlarge, not ml.p5e.48xlarge",
            id="a plan of another type",
        ),
        pytest.param(
            {"ResourceConfig": {"InstanceGroups": [GROUP], "TrainingPlanArn": PLAN}},
            "instances of type ml.p5.48xlarge, not ml.m5.large",
            id="a group of another type than the plan",
        ),
        pytest.param(on_plan() | SPOT_TIMES, "not for managed spot training", id="a plan and spot"),
        pytest.param(
            on_plan(KeepAlivePeriodInSeconds=60),
            "KeepAlivePeriodInSeconds is not for the instances of a training plan",
            id="a plan and a warm pool",
        ),
        pytest.param(
            preferring(P5, InstanceCount=1, TrainingPlanArn=PLAN),
            "either TrainingPlanArn or InstancePreferences",
            id="a plan and preferences",
        ),
        pytest.param(
            {"AlgorithmSpecification": {"AlgorithmName": "xgboost", "TrainingInputMode": "File"}},
            "AlgorithmSpecification.AlgorithmName: the twin has no algorithms of its own; give a",
            id="an algorithm",
        ),
        pytest.param(
            {"Tags": [{"Key": "a", "Value": "1"}, {"Key": "a", "Value": "2"}]},
            "Duplicate tag key",
            id="tag twice",
        ),
        pytest.param({"Tags": [{"Key": "aws:x", "Value": ""}]}, "reserved", id="tag of AWS"),
    ],
)
def test_it_refuses(admission, changes, words):
    body = {name: value for name, value in (request("job") | changes).items() if value is not None}

    with pytest.raises(AwsError) as caught:
        admission.admit(body)

    assert caught.value.code == "ValidationException"
    assert words in caught.value.message
