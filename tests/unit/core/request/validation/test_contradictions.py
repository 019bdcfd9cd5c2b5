"""O11 and C3: parts of a request that exclude each other are refused by the queue and by the twin."""

from typing import Any

import pytest
from trainmaster.core.request.validation import check_request, contradictions

from local.sagemaker.admission import Admission
from local.sagemaker.plan_book import PlanBook
from local.wire import AwsError
from tests.bodies import body, spot
from tests.integration.local.sagemaker_world import ACCOUNT, BUCKET, REGION, Buckets, manual_clock, request

GROUPS = [
    {"InstanceGroupName": name, "InstanceType": kind, "InstanceCount": 1}
    for name, kind in (("loaders", "ml.m5.large"), ("trainers", "ml.m5.xlarge"))
]
HETERO = {"ResourceConfig": {"InstanceGroups": GROUPS, "VolumeSizeInGB": 10}}
FSX = {
    "FileSystemId": "fs-0123456789a",
    "FileSystemType": "FSxLustre",
    "DirectoryPath": "/fsx",
    "FileSystemAccessMode": "ro",
}
RULE = {"RuleConfigurationName": "loss", "RuleEvaluatorImage": "x"}
HOOK = {"S3OutputPath": f"s3://{BUCKET}/debug"}


def channel(name: str, *groups: str, source: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    s3 = {"S3DataType": "S3Prefix", "S3Uri": f"s3://{BUCKET}/{name}/"} | (source or {})
    named = {"InstanceGroupNames": list(groups)} if groups else {}
    return {"ChannelName": name, "DataSource": {"S3DataSource": s3 | named}} | changes


def channels(*some: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"InputDataConfig": list(some)} | changes


def algorithm(**changes: Any) -> dict[str, Any]:
    return {"AlgorithmSpecification": request("x")["AlgorithmSpecification"] | changes}


MANIFEST = {"S3DataType": "AugmentedManifestFile", "AttributeNames": ["a"]}
S3 = "DataSource.S3DataSource"
LOGIN = "arn:aws:lambda:us-east-1:123456789012:function:login"
ONE_SOURCE = (
    "Exactly one of S3DataSource, FileSystemDataSource, DatasetSource must be specified for channel train"
)
CASES = [
    pytest.param(
        channels(channel("train", "trainers"), channel("code"), **HETERO),
        "InputDataConfig",
        "Some channels have assigned instance groups: [train] while others not: [code]",
        id="C3 some channels name instance groups and others do not",
    ),
    pytest.param(
        channels(channel("train", "trainrs"), **HETERO),
        f"InputDataConfig[0].{S3}.InstanceGroupNames[0]",
        "Instance group trainrs of channel train is not defined in ResourceConfig",
        id="a group that there is not",
    ),
    pytest.param(
        channels(channel("train", "trainers")),
        f"InputDataConfig[0].{S3}.InstanceGroupNames[0]",
        "Instance group trainers of channel train is not defined in ResourceConfig",
        id="groups without a cluster of groups",
    ),
    pytest.param(
        channels(channel("train", "trainers", "trainers"), **HETERO),
        f"InputDataConfig[0].{S3}.InstanceGroupNames[1]",
        "Duplicate instance group trainers in channel train",
        id="a group named twice",
    ),
    pytest.param(
        channels(channel("train"), channel("test"), channel("train")),
        "InputDataConfig[2].ChannelName",
        "Duplicate channel name: train",
        id="two channels of one name",
    ),
    pytest.param(
        channels({"ChannelName": "train", "DataSource": {}}),
        "InputDataConfig[0].DataSource",
        ONE_SOURCE,
        id="no source",
    ),
    pytest.param(
        channels(
            {
                "ChannelName": "train",
                "DataSource": channel("a")["DataSource"] | {"FileSystemDataSource": FSX},
            },
            VpcConfig={"Subnets": ["subnet-1"], "SecurityGroupIds": ["sg-1"]},
        ),
        "InputDataConfig[0].DataSource",
        ONE_SOURCE,
        id="two sources",
    ),
    pytest.param(
        channels({"ChannelName": "train", "DataSource": {"FileSystemDataSource": FSX}}),
        "InputDataConfig[0].DataSource.FileSystemDataSource",
        "VpcConfig must be specified when FileSystemDataSource is used",
        id="a file system without a VPC",
    ),
    pytest.param(
        channels(channel("train", source=MANIFEST)),
        f"InputDataConfig[0].{S3}.S3DataType",
        "AugmentedManifestFile can only be used with Pipe input mode: channel train",
        id="an augmented manifest as files",
    ),
    pytest.param(
        channels(channel("train", source={"S3DataType": "AugmentedManifestFile"}, InputMode="Pipe")),
        f"InputDataConfig[0].{S3}.AttributeNames",
        "AttributeNames must be specified for AugmentedManifestFile: channel train",
        id="an augmented manifest without attributes",
    ),
    pytest.param(
        channels(channel("train", source={"AttributeNames": ["a"]})),
        f"InputDataConfig[0].{S3}.AttributeNames",
        "AttributeNames is only supported for AugmentedManifestFile: channel train",
        id="attributes of a prefix",
    ),
    pytest.param(
        channels(channel("train", CompressionType="Gzip")),
        "InputDataConfig[0].CompressionType",
        "CompressionType Gzip is not supported in File input mode: channel train",
        id="unpacked in File mode",
    ),
    pytest.param(
        channels(channel("train", RecordWrapperType="RecordIO", InputMode="File"))
        | algorithm(TrainingInputMode="Pipe"),
        "InputDataConfig[0].RecordWrapperType",
        "RecordWrapperType RecordIO is not supported in File input mode: channel train",
        id="wrapped in a channel's own File mode",
    ),
    *(
        pytest.param(
            {"CheckpointConfig": {"S3Uri": f"s3://{BUCKET}/c", "LocalPath": folder}},
            "CheckpointConfig.LocalPath",
            '"LocalPath" of "CheckpointConfig" cannot overlap with the following reserved path:'
            " [/opt/ml/input, /opt/ml/model, /opt/ml/output]",
            id=f"checkpoints in {folder}",
        )
        for folder in ("/opt/ml/model", "/opt/ml/input/data/train", "/opt/ml", "/", "/opt/ml/output/")
    ),
    *(
        pytest.param(
            {"TensorBoardOutputConfig": HOOK | {"LocalPath": folder}},
            "TensorBoardOutputConfig.LocalPath",
            '"LocalPath" of "TensorBoardOutputConfig" cannot start with the following reserved path:'
            " [/opt/ml, /tmp, /usr/local/nvidia]",
            id=f"TensorBoard in {folder}",
        )
        for folder in ("/opt/ml/checkpoints/tb", "/tmp")
    ),
    pytest.param(
        {"DebugRuleConfigurations": [RULE, RULE]},
        "DebugRuleConfigurations[1].RuleConfigurationName",
        "RuleConfigurationName must be unique: loss",
        id="two rules of one name",
    ),
    pytest.param(
        {"ProfilerRuleConfigurations": [RULE], "ProfilerConfig": {"DisableProfiler": True}},
        "ProfilerRuleConfigurations",
        "ProfilerRuleConfigurations cannot be specified when DisableProfiler is true",
        id="rules of a profiler that is off",
    ),
    pytest.param(
        {"ProfilerConfig": HOOK | {"ProfilingIntervalInMilliseconds": 300}},
        "ProfilerConfig.ProfilingIntervalInMilliseconds",
        "ProfilingIntervalInMilliseconds must be one of [100, 200, 500, 1000, 5000, 60000]",
        id="an interval that there is not",
    ),
    pytest.param(
        algorithm(
            TrainingImageConfig={
                "TrainingRepositoryAccessMode": "Platform",
                "TrainingRepositoryAuthConfig": {"TrainingRepositoryCredentialsProviderArn": LOGIN},
            }
        ),
        "AlgorithmSpecification.TrainingImageConfig.TrainingRepositoryAuthConfig",
        "TrainingRepositoryAuthConfig is only supported when TrainingRepositoryAccessMode is Vpc",
        id="credentials of a registry that needs none",
    ),
]


@pytest.mark.parametrize(("changes", "field", "_words"), CASES)
def test_O11_the_queue_refuses_it_with_advice(changes: dict[str, Any], field: str, _words: str) -> None:
    (error,) = check_request(body(**changes))
    assert error.field == field
    assert error.message
    assert error.hint


@pytest.mark.parametrize(("changes", "_field", "words"), CASES)
def test_O11_aws_says_it_in_its_words(changes: dict[str, Any], _field: str, words: str) -> None:
    assert [one.aws for one in contradictions(body(**changes))] == [words]


def admission_to(store: Buckets) -> Admission:
    """What the twin's SageMaker accepts, without training plans."""
    clock = manual_clock()
    plans = PlanBook(clock, arn_prefix=f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-plan/")
    return Admission(store=store, account_id=ACCOUNT, region=REGION, plans=plans, clock=clock)


@pytest.mark.parametrize(("changes", "_field", "_words"), CASES)
def test_O11_the_twins_sagemaker_refuses_it_too(changes: dict[str, Any], _field: str, _words: str) -> None:
    store = Buckets(BUCKET)
    for name in ("train", "test", "code", "a"):
        store.write(BUCKET, f"{name}/file", b"")
    admission = admission_to(store)
    with pytest.raises(AwsError) as caught:
        admission.admit(request("job") | changes)
    assert caught.value.code == "ValidationException"


TAKEN = [
    pytest.param(channels(channel("train"), channel("code"), **HETERO), id="no channel names a group"),
    pytest.param(
        channels(channel("train", "trainers"), channel("code", "trainers", "loaders"), **HETERO),
        id="all channels name groups",
    ),
    pytest.param(
        channels(channel("train", CompressionType="None", RecordWrapperType="None")), id="nothing to unpack"
    ),
    pytest.param(
        {"CheckpointConfig": {"S3Uri": f"s3://{BUCKET}/c", "LocalPath": "/opt/ml/checkpoints"}}, id="default"
    ),
    pytest.param(
        {"CheckpointConfig": {"S3Uri": f"s3://{BUCKET}/c", "LocalPath": "/opt/ml/modelling"}}, id="near"
    ),
    pytest.param(
        {"TensorBoardOutputConfig": HOOK | {"LocalPath": "/tmpfiles/tb"}}, id="TensorBoard elsewhere"
    ),
    pytest.param({"DebugRuleConfigurations": [RULE]}, id="a rule without a hook of its own"),
    pytest.param({"ProfilerConfig": HOOK | {"ProfilingIntervalInMilliseconds": 500.0}}, id="an interval"),
]


@pytest.mark.parametrize("changes", TAKEN)
def test_O11_what_aws_takes_is_taken(changes: dict[str, Any]) -> None:
    assert check_request(body(**changes)) == []


@pytest.mark.parametrize("changes", TAKEN[:-1])
def test_O11_the_twin_takes_it_too(changes: dict[str, Any]) -> None:
    store = Buckets(BUCKET)
    for name in ("train", "code"):
        store.write(BUCKET, f"{name}/file", b"")
    admission_to(store).admit(request("job") | changes)


def test_C3_both_kinds_of_channels_are_named() -> None:
    mixed = channels(channel("train", "trainers"), channel("code"), channel("sm_drivers"), **HETERO)
    (error,) = check_request(body(**mixed))
    assert error.message == (
        "has channels that name instance groups (train) and channels that do not (code, sm_drivers)"
    )
    assert error.hint == "give InstanceGroupNames in every channel, or in none"


@pytest.mark.parametrize(
    "broken",
    [
        channels({"ChannelName": 5, "DataSource": []}),
        channels({"ChannelName": "x", "DataSource": {"S3DataSource": {"InstanceGroupNames": 7}}}),
        {"InputDataConfig": "x", "ProfilerConfig": [], "CheckpointConfig": 3},
        {"InputDataConfig": [channel("x" * 100_000, "g"), channel("y")]},
        {"DebugRuleConfigurations": {"a": 1}, "AlgorithmSpecification": "x"},
    ],
)
def test_O11_a_body_of_another_shape_is_no_trouble_and_is_not_repeated_at_length(
    broken: dict[str, Any],
) -> None:
    assert all(len(error.message) < 1000 for error in check_request(body(**broken)))


def test_O11_a_spot_job_that_waits_less_than_sagemakers_own_run_time_is_refused_by_both() -> None:
    waits = spot(wait=3600) | {"StoppingCondition": {"MaxWaitTimeInSeconds": 3600}}
    assert [one.field for one in check_request(waits)] == ["StoppingCondition.MaxWaitTimeInSeconds"]
    admission = admission_to(Buckets(BUCKET))
    wish = {"EnableManagedSpotTraining": True, "StoppingCondition": {"MaxWaitTimeInSeconds": 3600}}
    with pytest.raises(AwsError, match="Invalid MaxWaitTimeInSeconds"):
        admission.admit(request("job") | wish)
