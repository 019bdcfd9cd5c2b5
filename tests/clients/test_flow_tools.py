"""Tools that run a user's steps by themselves, under ``trainmaster run``: what a step trains queues."""

import pytest

from tests.clients.conftest import World, said
from tests.markdown import ROOT

pytestmark = pytest.mark.long

PYTHON = ROOT / ".venv-flows/bin/python"
PROGRAMS = ROOT / "tests/clients/programs"


@pytest.fixture
def environment(world: World, tmp_path) -> dict[str, str]:
    """What the tools keep goes into a folder of the test; nothing is sent to their makers."""
    if not PYTHON.exists():
        pytest.skip(f"there is no {PYTHON}: make test-clients makes it")
    return {
        **world.environment,
        "HOME": str(tmp_path),
        "USER": "ann",
        "METAFLOW_DATASTORE_SYSROOT_LOCAL": str(tmp_path),
        "METAFLOW_HOME": str(tmp_path),
        "ZENML_CONFIG_PATH": str(tmp_path / "zenml"),
        "ZENML_ANALYTICS_OPT_IN": "false",
        "AUTO_OPEN_DASHBOARD": "false",
    }


@pytest.mark.parametrize(
    ("job", "program"),
    [
        pytest.param("metaflow-step", ["metaflow_flow.py", "run"], id="a step of a flow of Metaflow"),
        pytest.param("zenml-step", ["zenml_pipeline.py"], id="a step of a pipeline of ZenML"),
    ],
)
def test_what_a_step_trains_queues(job: str, program: list[str], environment, world: World, tmp_path) -> None:
    command = [PYTHON, PROGRAMS / program[0], *program[1:]]
    printed = said([PYTHON.with_name("trainmaster"), "run", "--", *command], environment, cwd=tmp_path)
    assert "the job is Completed" in printed
    assert world.creators(job) == {"schedule"}
    assert world.plane.log(job) == "trained"
