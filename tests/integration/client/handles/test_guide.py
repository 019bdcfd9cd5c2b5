"""docs/examples/notebooks: run as it stands, against the fake API."""

import runpy
from typing import Any

import boto3
import pytest
from trainmaster_client.api import API_URL_VARIABLE

from tests.integration.client.fake_api import ACCESS_KEY, REGION, SECRET_KEY, Scripted, running_fake_api, view
from tests.markdown import ROOT


def test_the_example_lists_jobs_and_waits_for_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    listed: dict[str, Any] = {"jobs": [view("job1"), view("job2", state="running")], "next_token": None}
    with running_fake_api() as api:
        environment = {
            API_URL_VARIABLE: api.url,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_DEFAULT_REGION": REGION,
        }
        monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)  # one of before has the keys of before
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        over = view(
            "llama-7b-pretrain", state="failed", reason={"code": "gpu-oom", "message": "out of memory"}
        )
        api.script("GET", "/jobs", Scripted(document=listed))
        api.script("GET", "/jobs/llama-7b-pretrain", Scripted(document=over))
        runpy.run_path(str(ROOT / "docs/examples/notebooks/handles.py"))
        assert api.received[0].query == {"mine": ["true"], "limit": ["100"]}
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("job1: pending; ")
    assert printed[1].startswith("job2: running; ")
    assert [line for line in printed if line.split()[1:3] == ["job1", "p5"]], (
        "the frame has the one that waits"
    )
    assert printed[-1] == "failed gpu-oom: out of memory"
