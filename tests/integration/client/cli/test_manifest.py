"""``trainmaster manifest``: YAML for kubectl, notes beside it."""

import json
from pathlib import Path

import pytest
import yaml

from tests.integration.client.command import Trainmaster
from tests.manifests import large_job
from tests.markdown import ROOT

EXAMPLE = str(ROOT / "docs/examples/job.json")
CRD = """\
kind: CustomResourceDefinition
spec:
  group: kubeflow.org
  names: {kind: PyTorchJob}
  versions: [{name: v1, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: integer}}}}}]
"""


@pytest.mark.parametrize(
    ("kind", "name"),
    [("pytorchjob", "PyTorchJob"), ("trainjob", "TrainJob"), ("hyperpod", "HyperPodPyTorchJob")],
)
def test_the_manifest_is_yaml_with_its_notes_as_comments_and_on_standard_error(
    kind: str, name: str, trainmaster: Trainmaster
) -> None:
    ran = trainmaster("manifest", "--kind", kind, EXAMPLE)
    assert ran.code == 0
    documents = list(yaml.safe_load_all(ran.out))
    assert [one["kind"] for one in documents] == ["ConfigMap", name]
    assert documents[0]["data"]["start.py"].startswith('"""Runs first in a pod')
    notes = [line.removeprefix("# ") for line in ran.out.splitlines() if line.startswith("# ")]
    assert ran.err == "".join(f"Note: {one}\n" for one in notes)
    assert "ResourceConfig.VolumeSizeInGB: the node's disk is used; size it in the node group" in notes


def test_the_documents_are_the_same_as_json_and_in_a_file(trainmaster: Trainmaster, tmp_path: Path) -> None:
    file = tmp_path / "new" / "job.yaml"
    ran = trainmaster("manifest", "--kind", "trainjob", EXAMPLE, "-o", str(file))
    assert (ran.code, ran.out) == (0, "")
    printed = json.loads(trainmaster("manifest", "--kind", "trainjob", EXAMPLE, "--json").out)
    assert printed["documents"] == list(yaml.safe_load_all(file.read_text()))
    assert printed["notes"]


def test_what_cannot_be_mapped_ends_with_2_and_writes_nothing(
    trainmaster: Trainmaster, tmp_path: Path
) -> None:
    (tmp_path / "job.json").write_text(json.dumps(large_job(TrainingJobName="Big")))
    ran = trainmaster(
        "manifest", "--kind", "pytorchjob", str(tmp_path / "job.json"), "-o", str(tmp_path / "out")
    )
    assert (ran.code, ran.out) == (2, "")
    assert "TrainingJobName: 'Big'" in ran.err
    assert "CheckpointConfig.S3Uri: nothing copies" in ran.err
    assert not (tmp_path / "out").exists()


def test_a_manifest_that_the_definition_refuses_is_not_written(
    trainmaster: Trainmaster, tmp_path: Path
) -> None:
    (tmp_path / "crd.yaml").write_text(CRD)
    ran = trainmaster("manifest", "--kind", "pytorchjob", EXAMPLE, "--crd", str(tmp_path / "crd.yaml"))
    assert (ran.code, ran.out) == (2, "")
    assert "is not valid by" in ran.err
    assert "spec:" in ran.err
