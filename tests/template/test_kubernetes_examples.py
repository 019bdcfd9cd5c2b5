"""docs/examples/kubernetes and the GPU panels: they fit the manifests that `trainmaster manifest` makes."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from trainmaster_client.manifests import Kind
from trainmaster_client.manifests.crd_schema import crd_mistakes, read_crd

from tests.manifests import large_job, made
from tests.template.stack import ROOT

FOLDER = os.environ.get("TRAINMASTER_CRDS", "")
RUNTIME: dict[str, Any] = yaml.safe_load((ROOT / "docs/examples/kubernetes/runtime.yaml").read_text())
VOLUMES = list(yaml.safe_load_all((ROOT / "docs/examples/kubernetes/fsx.yaml").read_text()))
BOARD: dict[str, Any] = json.loads((ROOT / "docs/examples/grafana/gpus.json").read_text())
DCGM = {
    "DCGM_FI_DEV_GPU_UTIL",
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    "DCGM_FI_DEV_FB_USED",
    "DCGM_FI_PROF_DRAM_ACTIVE",
    "DCGM_FI_DEV_POWER_USAGE",
    "DCGM_FI_DEV_GPU_TEMP",
    "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",
    "DCGM_FI_DEV_XID_ERRORS",
    "DCGM_FI_DEV_SM_CLOCK",
}
"""Among those that DCGM's exporter writes unasked (its etc/default-counters.csv)."""


def test_the_runtime_has_the_hook_and_the_grace_that_other_kinds_have() -> None:
    node = RUNTIME["spec"]["template"]["spec"]["replicatedJobs"][0]
    pod = node["template"]["spec"]["template"]["spec"]
    job = made(large_job(), kind=Kind.PYTORCHJOB, claim="fsx").job
    other = job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]
    assert pod["containers"][0]["lifecycle"] == other["containers"][0]["lifecycle"]
    assert pod["terminationGracePeriodSeconds"] == other["terminationGracePeriodSeconds"]
    patched = made(large_job(), kind=Kind.TRAINJOB, claim="fsx").job["spec"]["runtimePatches"][0]
    (named,) = patched["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    patched_pod = named["template"]["spec"]["template"]["spec"]
    assert (named["name"], patched_pod["containers"][0]["name"]) == (
        node["name"],
        pod["containers"][0]["name"],
    )


@pytest.mark.skipif(not FOLDER, reason="TRAINMASTER_CRDS names no folder with the publishers' definitions")
def test_the_publishers_definition_takes_the_runtime() -> None:
    crd = read_crd(Path(FOLDER) / "clustertrainingruntimes.trainer.kubeflow.org.yaml")
    assert crd_mistakes(RUNTIME, crd) == []
    spoiled = json.loads(json.dumps(RUNTIME))
    spoiled["spec"]["template"]["spec"]["failurePolicy"]["maxRestarts"] = "five"
    assert crd_mistakes(spoiled, crd)


def test_the_volume_and_its_claim_name_each_other() -> None:
    volume, claim = VOLUMES
    assert volume["spec"]["claimRef"] == {
        "namespace": claim["metadata"]["namespace"],
        "name": claim["metadata"]["name"],
    }
    assert claim["spec"]["volumeName"] == volume["metadata"]["name"]
    assert volume["spec"]["accessModes"] == claim["spec"]["accessModes"] == ["ReadWriteMany"]


def test_the_gpu_panels_ask_for_what_the_exporter_writes_of_one_job() -> None:
    asked = [target["expr"] for panel in BOARD["panels"] for target in panel["targets"]]
    found = [re.fullmatch(r'(\w+)\{namespace="\$namespace", pod=~"\$job-\.\*"\}', one) for one in asked]
    assert {one[1] for one in found if one} == DCGM
    assert all(found)
    assert [one["name"] for one in BOARD["templating"]["list"]] == ["datasource", "namespace", "job"]
