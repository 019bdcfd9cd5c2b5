"""Patterns of public notebooks for the SDK v2, unmodified, under ``trainmaster run``: each job queues."""

from typing import Any

import pytest

from tests.clients.conftest import Notebook, World, notebooks_of
from tests.markdown import ROOT

pytestmark = pytest.mark.long

PYTHON = ROOT / ".venv/bin/python"
NO_JOB = {"source_code_in_git_that_cannot_be_cloned"}
ENDS = {"stop_and_describe": "Stopped", "fit_of_a_job_that_fails": "Failed"}
"""All others complete."""
PRINTED = {
    "inputs_as_a_string": 'channels ["training"]',
    "inputs_as_a_dict_of_strings": 'channels ["test", "train"]',
    "inputs_as_a_training_input": 'channels ["training"]',
    "inputs_as_a_dict_of_training_inputs": 'channels ["train", "validation"]',
    "hugging_face": 'arguments ["--epochs", "1", "--model_name", "distilbert-base-uncased"]',
    "xgboost_with_a_script": 'arguments ["--max_depth", "5", "--objective", "reg:squarederror"]',
    "hyperparameters_of_every_type": (
        'arguments ["--deep", "x=True", "--epochs", "3", "--layers", "[1, 2]", "--name", "a b", "--rate", '
        '"0.5"]'
    ),
    "environment_variables": "said by the notebook",
}
"""A line of the job's log that its pattern is about, as the user reads it."""
SAW = {
    "attach_of_a_plain_estimator": {"status": "Completed"},
    "metric_definitions_and_their_data_frame": {"metrics": ["loss"]},
    "tags_of_ones_own_and_of_the_queue": {
        "tags": [{"Key": "priority", "Value": "5"}, {"Key": "project", "Value": "one"}]
    },
    "fit_of_a_job_that_fails": {"raised": "Failed"},
}


@pytest.fixture(scope="module")
def notebooks(world: World) -> dict[str, Notebook]:
    return world.under_run(PYTHON, "notebooks_v2")


@pytest.mark.parametrize("name", [one for one in notebooks_of("notebooks_v2") if one not in NO_JOB])
def test_each_pattern_queues_and_sees_its_job_end(
    name: str, notebooks: dict[str, Notebook], world: World
) -> None:
    found = notebooks[name]
    assert found["error"] is None, found["error"]
    assert {one["status"] for one in found["jobs"]} == {ENDS.get(name, "Completed")}
    for job in found["jobs"]:
        assert job["status"] != "Completed" or job["lines"][-1] == "trained"
        assert job["status"] == "Stopped" or world.creators(job["name"]) == {"schedule"}
        assert name not in PRINTED or PRINTED[name] in job["lines"]
    assert SAW.get(name, found["saw"]) == found["saw"]


@pytest.mark.parametrize("name", ["attach_and_wait", "outputs_where_the_user_wants_them"])
def test_the_model_is_where_its_job_put_it(name: str, notebooks: dict[str, Notebook], world: World) -> None:
    found = notebooks[name]
    bucket, _, key = found["saw"]["model_data"].removeprefix("s3://").partition("/")
    assert f"/{found['jobs'][0]['name']}/output/model.tar.gz" in f"/{key}"
    assert world.plane.client("s3").head_object(Bucket=bucket, Key=key)["ContentLength"] > 0


def test_fit_that_waits_shows_the_lines_of_its_job(notebooks: dict[str, Notebook]) -> None:
    printed: Any = notebooks["fit_that_waits_with_logs"]["printed"]
    assert "step=3 loss=0.333" in printed
    assert "Training seconds" in printed


def test_source_code_in_git_is_cloned_by_the_sdk_before_anything_queues(
    notebooks: dict[str, Notebook], world: World
) -> None:
    found = notebooks["source_code_in_git_that_cannot_be_cloned"]
    assert "git" in found["saw"]["refused"]
    assert world.creators("source-code-in-git") == set()
