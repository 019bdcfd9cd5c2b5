"""What cannot be mapped is refused at once with all mistakes; what has no counterpart is said."""

from typing import Any

import pytest
from trainmaster.core.request.request_shapes import ROOT, SHAPES
from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.manifests import Channels, Kind, ManifestOptions
from trainmaster_client.manifests.notes import notes

from tests.manifests import large_job, made


def refusal(body: Any, **options: Any) -> list[str]:
    with pytest.raises(InvalidArgumentError) as caught:
        made(body, **({"kind": Kind.PYTORCHJOB, "claim": "fsx"} | options))
    first, *lines, last = str(caught.value).splitlines()
    assert first.startswith("This request cannot become a ")
    assert last.strip() == "Nothing was written."
    return [line.strip() for line in lines]


def channel(**source: Any) -> dict[str, Any]:
    s3 = {"S3DataType": "S3Prefix", "S3Uri": "s3://corpora/train"} | source
    return {"ChannelName": "train", "DataSource": {"S3DataSource": s3}}


def test_every_mistake_is_in_one_message_with_field_problem_and_remedy() -> None:
    body = large_job(
        TrainingJobName="Llama-7B",
        Environment={"WORLD_SIZE": "16"},
        InputDataConfig=[channel(S3DataDistributionType="ShardedByS3Key")],
    )
    name, environment, data, checkpoints = refusal(body, claim=None)
    assert name == (
        "TrainingJobName: 'Llama-7B' cannot be the name of a job in Kubernetes;"
        " use at most 50 lower-case letters, digits and hyphens, a letter first."
    )
    assert environment == "Environment.WORLD_SIZE: is set by the operator; leave it out."
    assert data == (
        "InputDataConfig[0].DataSource.S3DataSource.S3DataDistributionType: every pod sees all objects;"
        " use FullyReplicated, and let the program choose by its rank."
    )
    assert checkpoints == (
        "CheckpointConfig.S3Uri: nothing copies a folder of a pod to S3;"
        " name a claim that all pods may write with --claim, or let the program write to S3 itself"
        " (the hyperparameter checkpoint_dir of the training program)."
    )


def test_a_request_that_sagemaker_would_refuse_is_refused_with_the_same_words() -> None:
    body = large_job(
        ResourceConfig={"InstanceType": "ml.p5.48xlarge", "InstanceCount": 0, "VolumeSizeInGB": 9}
    )
    assert [line.partition(":")[0] for line in refusal(body)] == ["ResourceConfig.InstanceCount"]
    assert refusal([])


@pytest.mark.parametrize(
    ("changes", "options", "field"),
    [
        pytest.param(
            {"InputDataConfig": [channel() | {"InputMode": "Pipe"}]},
            {},
            "InputDataConfig[0].InputMode",
            id="pipe",
        ),
        pytest.param(
            {"InputDataConfig": [channel() | {"CompressionType": "Gzip"}]},
            {},
            "InputDataConfig[0].CompressionType",
            id="packed",
        ),
        pytest.param(
            {"InputDataConfig": [channel(S3DataType="ManifestFile")]},
            {},
            "InputDataConfig[0].DataSource.S3DataSource.S3DataType",
            id="a manifest of objects",
        ),
        pytest.param(
            {"InputDataConfig": [channel(S3Uri="s3://corpora/../train")]},
            {},
            "InputDataConfig[0].DataSource.S3DataSource.S3Uri",
            id="a path that leaves its folder",
        ),
        pytest.param({}, {"channels": Channels.CLAIM, "claim": None}, "InputDataConfig[0]", id="no claim"),
        pytest.param(
            {},
            {"channels": Channels.INIT, "kind": Kind.TRAINJOB},
            "InputDataConfig[0]",
            id="an init container in a TrainJob",
        ),
        pytest.param({"Environment": {"PET_NNODES": "2"}}, {}, "Environment.PET_NNODES", id="reserved"),
        pytest.param(
            {"ResourceConfig": {"InstanceType": "ml.p9.48xlarge", "InstanceCount": 2, "VolumeSizeInGB": 9}},
            {},
            "ResourceConfig.InstanceType",
            id="an unknown type",
        ),
    ],
)
def test_what_cannot_be_mapped_is_refused(
    changes: dict[str, Any], options: dict[str, Any], field: str
) -> None:
    assert field in [line.partition(": ")[0] for line in refusal(large_job(**changes), **options)]


def test_without_a_program_that_can_be_started_there_is_no_manifest() -> None:
    body = large_job()
    del body["AlgorithmSpecification"]["ContainerEntrypoint"]
    (line,) = refusal(body)
    assert line.startswith("AlgorithmSpecification.ContainerEntrypoint: is missing")


def test_a_program_that_writes_to_s3_itself_needs_no_claim() -> None:
    body = large_job(HyperParameters={"checkpoint_dir": '"s3://work/checkpoints"'})
    found = made(body, kind=Kind.PYTORCHJOB)
    assert any(
        one.startswith("CheckpointConfig.S3Uri: the program writes to S3 itself") for one in found.notes
    )


def test_notes_say_what_is_left_out() -> None:
    body = large_job(
        RetryStrategy={"MaximumRetryAttempts": 2},
        Tags=[{"Key": "trainmaster:retries", "Value": "2"}, {"Key": "cost center", "Value": "a b"}],
    )
    found = made(body, kind=Kind.TRAINJOB, claim="fsx")
    kept = "kept in that folder of the claim fsx; link the claim with S3 to have it there"
    assert list(found.notes) == [
        "RoleArn: the pods have the AWS rights of their service account (--service-account)",
        f"CheckpointConfig.S3Uri: {kept}",
        f"OutputDataConfig.S3OutputPath: {kept}",
        "ResourceConfig.VolumeSizeInGB: the node's disk is used; size it in the node group",
        "RetryStrategy.MaximumRetryAttempts: the retries are the runtime's (backoffLimit)",
        "Tags (cost center): cannot be a label; it is in the annotation trainmaster/tags",
        "Tags (trainmaster:retries): only a label; this queue does not run the job",
        (
            "terminationGracePeriodSeconds is set, but a TrainJob cannot set a preStop hook, restartPolicy or"
            " backoffLimit: the runtime torch-distributed has them"
        ),
    ]
    assert found.job["metadata"]["labels"]["trainmaster/retries"] == "2"
    assert found.job["metadata"]["annotations"] == {
        "trainmaster/tags": '[{"Key": "cost center", "Value": "a b"}]'
    }


@pytest.mark.parametrize(
    ("queue", "said"),
    [
        pytest.param(None, "--priority-class is left out", id="without Kueue"),
        pytest.param("team-a", "only Kueue's label is set", id="with Kueue"),
    ],
)
def test_a_trainjob_says_that_it_cannot_set_a_priority_class(queue: str | None, said: str) -> None:
    found = made(large_job(), kind=Kind.TRAINJOB, claim="fsx", priority_class="high", queue=queue)
    rest = "a TrainJob cannot set priorityClassName, its runtime can"
    assert f"Tags (priority): {said}; {rest}" in found.notes
    assert ("kueue.x-k8s.io/priority-class" in found.job["metadata"]["labels"]) == (queue is not None)


MAPPED_WHOLE = {
    "TrainingJobName",
    "HyperParameters",
    "Environment",
    "InputDataConfig",
    "Tags",
    "ServerlessJobConfig",
}


@pytest.mark.parametrize("name", sorted(set(SHAPES[ROOT]["members"]) - MAPPED_WHOLE - set(large_job())))
def test_no_member_of_a_request_is_dropped_without_a_word(name: str) -> None:
    value: Any = {"Anything": 1} if SHAPES[SHAPES[ROOT]["members"][name]]["type"] != "boolean" else True
    options = ManifestOptions(kind=Kind.HYPERPOD, claim="fsx")
    before, after = (list(notes(body, options)) for body in (large_job(), large_job(**{name: value})))
    assert [one for one in after if one not in before and one.startswith(name)]
