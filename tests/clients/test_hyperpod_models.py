"""Manifests of HyperPod against AWS's own models. ``make test-hyperpod`` makes their environment."""

import json
import subprocess
from copy import deepcopy
from typing import Any

import pytest
from trainmaster_client.manifests import Channels, Kind

from tests.manifests import large_job, made
from tests.markdown import ROOT

pytestmark = pytest.mark.long

PYTHON = ROOT / ".venv-hyperpod/bin/python"
PROGRAM = ROOT / "tests/clients/programs/hyperpod_models.py"


def mistakes(*jobs: dict[str, Any]) -> list[list[str]]:
    if not PYTHON.exists():
        pytest.skip(f"there is no {PYTHON}: make test-hyperpod makes it")
    command = [str(PYTHON), "-W", "ignore", str(PROGRAM)]
    ran = subprocess.run(command, input=json.dumps(jobs), capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    found: list[list[str]] = json.loads(ran.stdout)
    return found


def hyperpod_job(**options: Any) -> dict[str, Any]:
    body = large_job(RetryStrategy={"MaximumRetryAttempts": 2})
    return made(body, kind=Kind.HYPERPOD, claim="fsx", service_account="trainer", **options).job


def test_the_models_take_every_manifest() -> None:
    assert mistakes(*(hyperpod_job(channels=one) for one in Channels)) == [[], [], []]


def test_the_models_refuse_spoiled_manifests_and_name_the_field() -> None:
    jobs = [deepcopy(hyperpod_job()) for _ in range(4)]
    pods = [one["spec"]["replicaSpecs"][0]["template"]["spec"] for one in jobs]
    pods[0]["terminationGracePeriod"] = pods[0].pop("terminationGracePeriodSeconds")
    jobs[1]["spec"]["runPolicy"]["activeDeadlineSeconds"] = "a day"
    del pods[2]["containers"][0]["name"]
    for amounts in pods[3]["containers"][0]["resources"].values():
        amounts["vpc.amazonaws.com/efa"] = 64
    misspelt, mistyped, nameless, greedy = (" ".join(one) for one in mistakes(*jobs))
    assert "replicaSpecs.0.template.spec.terminationGracePeriod: Extra inputs" in misspelt
    assert "runPolicy.activeDeadlineSeconds: Input should be a valid integer" in mistyped
    assert "replicaSpecs.0.template.spec.containers.0.name: Field required" in nameless
    assert greedy == "Requested EFA limit (64) exceeds instance capacity (32)"
