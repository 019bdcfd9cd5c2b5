"""docs/examples/recipes: each program run as it stands, against the fake API."""

import json
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from trainmaster_client.api import API_URL_VARIABLE

from tests.integration.client.fake_api import (
    ACCESS_KEY,
    REGION,
    SECRET_KEY,
    FakeApi,
    Scripted,
    running_fake_api,
    view,
)
from tests.markdown import ROOT

RECIPES = ROOT / "docs/examples/recipes"
REQUEST = {"TrainingJobName": "base", "StoppingCondition": {"MaxRuntimeInSeconds": 60}}
FAILED = view("first", state="failed", reason={"code": "gpu-oom", "message": "out of memory"})


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeApi]:
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)  # one of before has the keys of before
    monkeypatch.chdir(tmp_path)
    (tmp_path / "request.json").write_text(json.dumps(REQUEST))
    with running_fake_api() as running:
        for name, value in {
            API_URL_VARIABLE: running.url,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_DEFAULT_REGION": REGION,
        }.items():
            monkeypatch.setenv(name, value)
        yield running


def run(monkeypatch: pytest.MonkeyPatch, program: str, *arguments: str) -> object:
    """What the program gave to ``sys.exit``; None where it came to its end."""
    monkeypatch.setattr(sys, "argv", [program, *arguments])
    try:
        runpy.run_path(str(RECIPES / program))
    except SystemExit as end:
        return end.code
    return None


def submitted(api: FakeApi) -> list[dict[str, object]]:
    return [json.loads(call.body) for call in api.received if call.method == "POST"]


def test_ci_ends_well_when_the_job_has_completed(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    api.script("POST", "/add-job", Scripted(status=201, document={"job": view("nightly-7"), "warnings": []}))
    api.script("GET", "/jobs/nightly-7", Scripted(document=view("nightly-7", state="completed")))
    assert run(monkeypatch, "train_in_ci.py", "request.json", "nightly-7") is None
    assert submitted(api) == [{**REQUEST, "TrainingJobName": "nightly-7"}]


def test_ci_ends_with_the_reason_when_the_job_has_failed(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.script("POST", "/add-job", Scripted(status=201, document={"job": view("first"), "warnings": []}))
    api.script("GET", "/jobs/first", Scripted(document=FAILED))
    assert run(monkeypatch, "train_in_ci.py", "request.json", "first") == (
        "first failed: gpu-oom: out of memory"
    )


def test_the_second_job_is_submitted_when_the_first_has_completed(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.script("GET", "/jobs/first", Scripted(document=view("first", state="completed")))
    api.script("POST", "/add-job", Scripted(status=201, document={"job": view("base"), "warnings": []}))
    assert run(monkeypatch, "after.py", "first", "request.json") is None
    assert submitted(api) == [REQUEST]


def test_the_second_job_is_not_submitted_when_the_first_has_failed(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.script("GET", "/jobs/first", Scripted(document=FAILED))
    assert run(monkeypatch, "after.py", "first", "request.json") == "first failed: gpu-oom: out of memory"
    assert submitted(api) == []


def test_a_sweep_is_one_job_for_each_value(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    api.script("POST", "/add-job", Scripted(status=201, document={"job": view("base-0"), "warnings": []}))
    assert run(monkeypatch, "sweep.py", "request.json", "0.1", "0.01") is None
    assert submitted(api) == [
        {**REQUEST, "TrainingJobName": "base-0", "HyperParameters": {"lr": "0.1"}},
        {**REQUEST, "TrainingJobName": "base-1", "HyperParameters": {"lr": "0.01"}},
    ]


def test_only_your_own_waiting_jobs_are_cancelled(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    api.script("GET", "/jobs", Scripted(document={"jobs": [view("a"), view("b")], "next_token": None}))
    for name in ("a", "b"):
        api.script("DELETE", f"/jobs/{name}", Scripted(status=202, document=view(name, state="stopped")))
    assert run(monkeypatch, "cancel_waiting.py") is None
    assert api.received[0].query["mine"] == ["true"]
    assert api.received[0].query["state"] == ["pending"]
    assert capsys.readouterr().out == "a stopped\nb stopped\n"
