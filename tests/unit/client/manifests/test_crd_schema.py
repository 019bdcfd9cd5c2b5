"""A job is held against the definition of its kind, and a spoiled one is refused."""

import os
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.manifests import Channels, Kind
from trainmaster_client.manifests.crd_schema import crd_mistakes, read_crd

from tests.manifests import large_job, made

FOLDER = os.environ.get("TRAINMASTER_CRDS", "")
PUBLISHED = {
    Kind.PYTORCHJOB: "pytorchjobs.kubeflow.org.yaml",
    Kind.TRAINJOB: "trainjobs.trainer.kubeflow.org.yaml",
}
SMALL: dict[str, Any] = {
    "kind": "CustomResourceDefinition",
    "spec": {
        "group": "kubeflow.org",
        "names": {"kind": "PyTorchJob"},
        "versions": [
            {
                "name": "v1",
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "apiVersion": {"type": "string"},
                            "kind": {"type": "string"},
                            "metadata": {"type": "object"},
                            "spec": {
                                "type": "object",
                                "required": ["pytorchReplicaSpecs"],
                                "properties": {
                                    "runPolicy": {
                                        "type": "object",
                                        "properties": {
                                            "activeDeadlineSeconds": {"type": "integer"},
                                            "cleanPodPolicy": {"type": "string"},
                                        },
                                    },
                                    "pytorchReplicaSpecs": {
                                        "type": "object",
                                        "additionalProperties": {
                                            "type": "object",
                                            "x-kubernetes-preserve-unknown-fields": True,
                                            "properties": {"replicas": {"type": "integer"}},
                                        },
                                    },
                                },
                            },
                        },
                    }
                },
            }
        ],
    },
}


def test_a_small_definition_takes_the_job_and_names_the_field_of_each_mistake() -> None:
    job = made(large_job(), kind=Kind.PYTORCHJOB, claim="fsx").job
    assert crd_mistakes(job, SMALL) == []
    spoiled = deepcopy(job)
    spoiled["spec"]["runPolicy"]["activeDeadlineSeconds"] = "a day"
    spoiled["spec"]["runPolicy"]["cleanPods"] = "None"
    spoiled["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] = "1"
    assert [one.partition(": ")[0] for one in crd_mistakes(spoiled, SMALL)] == [
        "spec.pytorchReplicaSpecs.Worker.replicas",
        "spec.runPolicy",
        "spec.runPolicy.activeDeadlineSeconds",
    ]
    del spoiled["spec"]["pytorchReplicaSpecs"]
    assert crd_mistakes(spoiled, SMALL)[0] == "spec: 'pytorchReplicaSpecs' is a required property"


def test_a_definition_of_another_kind_is_refused() -> None:
    job = made(large_job(), kind=Kind.TRAINJOB, claim="fsx").job
    with pytest.raises(InvalidArgumentError, match="definition is of PyTorchJob"):
        crd_mistakes(job, SMALL)


@pytest.mark.parametrize("text", ["", "kind: Pod\n", "a: [\n"])
def test_a_file_without_a_definition_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "crd.yaml").write_text(text)
    with pytest.raises(InvalidArgumentError, match="--crd"):
        read_crd(tmp_path / "crd.yaml")
    with pytest.raises(InvalidArgumentError, match="--crd"):
        read_crd(tmp_path / "missing.yaml")


@pytest.mark.skipif(not FOLDER, reason="TRAINMASTER_CRDS names no folder with the publishers' definitions")
@pytest.mark.parametrize("kind", PUBLISHED)
def test_the_publishers_definition_takes_every_manifest_and_refuses_a_spoiled_one(kind: Kind) -> None:
    crd = read_crd(Path(FOLDER) / PUBLISHED[kind])
    for channels in Channels:
        if (kind, channels) != (Kind.TRAINJOB, Channels.INIT):
            job = made(
                large_job(RetryStrategy={"MaximumRetryAttempts": 2}),
                kind=kind,
                channels=channels,
                claim="fsx",
                service_account="trainer",
                priority_class="high",
                queue="team-a",
            ).job
            assert crd_mistakes(job, crd) == []
            for mistake in spoiled(job):
                assert crd_mistakes(mistake, crd), mistake


def spoiled(job: dict[str, Any]) -> list[dict[str, Any]]:
    """A field that is not there, one of a wrong type and one that is missing, each deep in the pod."""
    found = []
    for change in (_misspelt, _mistyped, _nameless):
        found.append(deepcopy(job))
        change(_pod(found[-1]["spec"]))
    return found


def _pod(spec: dict[str, Any]) -> dict[str, Any]:
    if "pytorchReplicaSpecs" in spec:
        template: dict[str, Any] = spec["pytorchReplicaSpecs"]["Worker"]["template"]
    else:
        patch = spec["runtimePatches"][0]["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"][0]
        template = patch["template"]["spec"]["template"]
    found: dict[str, Any] = template["spec"]
    return found


def _misspelt(pod: dict[str, Any]) -> None:
    pod["terminationGracePeriod"] = pod.pop("terminationGracePeriodSeconds")


def _mistyped(pod: dict[str, Any]) -> None:
    pod["terminationGracePeriodSeconds"] = "120"


def _nameless(pod: dict[str, Any]) -> None:
    del pod["containers"][0]["name"]
