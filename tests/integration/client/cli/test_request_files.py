"""Request files as people have them, at every command that reads one."""

import json
from pathlib import Path

import yaml

from tests.integration.client.command import Trainmaster
from tests.integration.client.fake_api import ARN, REQUEST, FakeApi, Scripted, view

FORESEEN = {"valid": True, "violations": [], "pool": "p5", "position": 1, "estimated_cost_usd": 1.0}


def test_C11_a_clone_of_a_described_job_is_sent_without_what_only_the_answer_has(
    trainmaster: Trainmaster, api: FakeApi, tmp_path: Path
) -> None:
    file = tmp_path / "describe.json"
    file.write_text(json.dumps({**REQUEST, "TrainingJobArn": ARN, "TrainingJobStatus": "Completed"}))
    api.script("POST", "/add-job", Scripted(document=FORESEEN))
    ran = trainmaster("submit", str(file), "--dry-run")
    assert ran.code == 0
    assert ran.out.startswith("Valid: ")
    assert "without TrainingJobArn, TrainingJobStatus." in ran.err
    assert json.loads(api.received[0].body) == REQUEST


def test_C12_a_wrapped_request_is_refused_in_one_line_and_nothing_is_sent(
    trainmaster: Trainmaster, api: FakeApi, tmp_path: Path
) -> None:
    file = tmp_path / "airflow.json"
    file.write_text(json.dumps({"Training": REQUEST}))
    for command in (["submit", "--dry-run"], ["submit"], ["advise"], ["manifest", "--kind", "pytorchjob"]):
        ran = trainmaster(*command, str(file))
        assert (ran.code, ran.out, api.received) == (2, "", [])
        said = "the request is in Training: give that part. Nothing was sent."
        assert ran.err == f"trainmaster: {file}: {said}\n"


def test_C13_a_request_in_yaml_is_sent_as_json(
    trainmaster: Trainmaster, api: FakeApi, tmp_path: Path
) -> None:
    file = tmp_path / "request.yaml"
    file.write_text(f"# nightly\n{yaml.safe_dump(REQUEST)}")
    api.script("POST", "/add-job", Scripted(status=201, document={"job": view()}))
    assert trainmaster("submit", str(file)).code == 0
    assert json.loads(api.received[0].body) == REQUEST


def test_C10_submit_from_a_job_sends_its_request_under_another_name(
    trainmaster: Trainmaster, api: FakeApi
) -> None:
    api.script("GET", "/jobs/job1", Scripted(document={**view(state="failed"), "request": REQUEST}))
    api.script("POST", "/add-job", Scripted(status=201, document={"job": view("job2")}))
    assert trainmaster("submit", "--from", "job1", "--name", "job2").out.startswith("job2: Waiting")
    assert json.loads(api.received[-1].body) == {**REQUEST, "TrainingJobName": "job2"}
    assert trainmaster("submit", "--from", "job1").code == 0
    assert json.loads(api.received[-1].body)["TrainingJobName"].startswith("job1-2")
    assert trainmaster("submit", "--from", "job1", "--name", "job1").code == 2


def test_a_file_may_be_submitted_under_another_name(
    trainmaster: Trainmaster, api: FakeApi, tmp_path: Path
) -> None:
    file = tmp_path / "job.json"
    file.write_text(json.dumps(REQUEST))
    api.script("POST", "/add-job", Scripted(document=FORESEEN))
    assert trainmaster("submit", str(file), "--name", "tonight", "--dry-run").code == 0
    assert json.loads(api.received[-1].body) == {**REQUEST, "TrainingJobName": "tonight"}


def test_one_source_of_a_request_is_needed(trainmaster: Trainmaster, api: FakeApi, tmp_path: Path) -> None:
    file = tmp_path / "job.json"
    file.write_text(json.dumps(REQUEST))
    for arguments in ([], [str(file), "--from", "job1"]):
        ran = trainmaster("submit", *arguments)
        assert (ran.code, ran.out, api.received) == (2, "", [])
        assert "Give FILE, or --from JOB." in ran.err
