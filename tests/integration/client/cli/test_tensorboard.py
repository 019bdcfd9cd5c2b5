"""``trainmaster tensorboard`` with a fake API, a fake SageMaker and a fake TensorBoard."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration.client.cli.test_ssh import SageMaker, program, sagemaker, script, tools
from tests.integration.client.command import Trainmaster
from tests.integration.client.fake_api import FakeApi, view

__all__ = ["sagemaker", "tools"]

OUTPUT = {
    "TrainingJobStatus": "Completed",
    "TensorBoardOutputConfig": {"S3OutputPath": "s3://bucket/boards/"},
}
FOLDERS = {
    "attempt-0": "s3://bucket/boards/job1/tensorboard-output",
    "attempt-1": "s3://bucket/boards/job1-r1-abc123/tensorboard-output",
}
SHOWN = ",".join(f"{name}:{place}" for name, place in FOLDERS.items())


def attempt(number: int, name: str) -> dict[str, Any]:
    return {"attempt": number, "training_job_name": name}


ENDED = view(
    state="completed",
    attempt=1,
    training_job_name="job1-r1-abc123",
    attempts=[attempt(1, "job1-r1-abc123"), attempt(0, "job1")],
)


def test_it_shows_all_attempts_also_of_a_job_that_has_ended(
    trainmaster: Trainmaster, api: FakeApi, sagemaker: SageMaker, tools: Path
) -> None:
    script(api, ENDED)
    sagemaker.answer = OUTPUT
    program(tools, "tensorboard", f'echo "$@" > {tools}/ran; exit 3')
    assert trainmaster("tensorboard", "job1", "--port", "7000").code == 3
    assert (tools / "ran").read_text() == f"--logdir_spec {SHOWN} --port 7000\n"
    assert sagemaker.described == ["job1-r1-abc123"]


def test_the_command_is_printed_where_there_is_no_tensorboard(
    trainmaster: Trainmaster, api: FakeApi, sagemaker: SageMaker, tools: Path
) -> None:
    script(api, ENDED)
    sagemaker.answer = OUTPUT
    assert trainmaster("tensorboard", "job1", "--print").out == (
        f"tensorboard --logdir_spec {SHOWN} --port 6006\n"
    )
    assert json.loads(trainmaster("tensorboard", "job1", "--json").out)["folders"] == FOLDERS
    ran = trainmaster("tensorboard", "job1")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        "trainmaster: no TensorBoard of job1: tensorboard is not installed: pip install tensorboard boto3.\n"
    )


@pytest.mark.parametrize(
    ("changes", "answer", "said"),
    [
        pytest.param({"attempts": []}, OUTPUT, "it has not started yet", id="never ran"),
        pytest.param({}, {}, "it has no TensorBoardOutputConfig", id="writes none"),
        pytest.param({}, {"TensorBoardOutputConfig": None}, "it has no TensorBoardOutputConfig", id="null"),
        pytest.param(
            {},
            {"TensorBoardOutputConfig": {"S3OutputPath": "s3://bucket/a,b"}},
            "TensorBoard cannot read s3://bucket/a,b: it takes a comma",
            id="a comma",
        ),
        pytest.param(
            {},
            {"TensorBoardOutputConfig": {"S3OutputPath": "https://bucket.s3.amazonaws.com/a"}},
            "TensorBoard cannot read https://bucket.s3.amazonaws.com/a: only an S3OutputPath that begins",
            id="by https",
        ),
    ],
)
def test_what_is_missing_is_said(
    trainmaster: Trainmaster,
    api: FakeApi,
    sagemaker: SageMaker,
    changes: dict[str, Any],
    answer: dict[str, Any],
    said: str,
) -> None:
    script(api, ENDED | changes)
    sagemaker.answer = answer
    ran = trainmaster("tensorboard", "job1", "--print")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"trainmaster: no TensorBoard of job1: {said}")
