"""Patterns of notebooks for the SDK v3, unmodified, under ``trainmaster run``: each job queues."""

import pytest

from local.namespace import namespaces_refused
from tests.clients.conftest import Notebook, World, notebooks_of
from tests.markdown import ROOT

pytestmark = pytest.mark.long

PYTHON = ROOT / ".venv-v3/bin/python"
PRINTED = {
    "command_in_place_of_a_script": 'arguments ["--a", "1"]',
    "input_data_from_s3": 'channels ["code", "sm_drivers", "train"]',
    "hyperparameters_and_environment": "said by the notebook",
}
"""A line of the job's log that its pattern is about, as the user reads it."""
SAW = {
    "job_fetched_by_its_name_and_waited_for": {"status": "Completed"},
    "resource_api": {"status": "Completed"},
    "train_of_a_job_that_fails": {"raised": "FailedStatusError"},
}


@pytest.fixture(scope="module")
def notebooks(world: World) -> dict[str, Notebook]:
    if not PYTHON.exists():
        pytest.skip(f"there is no {PYTHON}: make test-clients makes it")
    if (refused := namespaces_refused()) is not None:
        pytest.skip(f"this machine refuses the namespaces that jobs of the SDK v3 need: {refused}")
    return world.under_run(PYTHON, "notebooks_v3")


@pytest.mark.parametrize("name", notebooks_of("notebooks_v3"))
def test_each_pattern_queues_and_sees_its_job_end(
    name: str, notebooks: dict[str, Notebook], world: World
) -> None:
    found = notebooks[name]
    assert found["error"] is None, found["error"]
    wanted = "Failed" if name == "train_of_a_job_that_fails" else "Completed"
    assert {one["status"] for one in found["jobs"]} == {wanted}
    for job in found["jobs"]:
        assert wanted == "Failed" or "trained" in job["lines"]
        assert world.creators(job["name"]) == {"schedule"}
        assert name not in PRINTED or PRINTED[name] in job["lines"]
    assert SAW.get(name, {}) == found["saw"]
