"""L4: aiobotocore pins a botocore of its own, so its tests run in an environment of theirs."""

import pytest

from tests.faults.other_environments import play


@pytest.mark.thorough
def test_L4_aiobotocore_describes_waiting_and_preempted_jobs_as_in_progress() -> None:
    """The environment takes a minute where there is none."""
    play("tests/aio", environment=".venv-aio")
