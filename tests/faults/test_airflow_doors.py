"""L5: Airflow pins packages of its own, so its tests run in an environment of theirs."""

import pytest

from tests.faults.other_environments import play


@pytest.mark.thorough
def test_L5_tasks_of_airflow_wait_with_their_jobs_and_end_with_them() -> None:
    """The environment takes two minutes where there is none."""
    play("tests/airflow", environment=".venv-airflow")
