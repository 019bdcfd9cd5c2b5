"""``make demo`` as a user runs it."""

import json
import subprocess
import sys
from typing import Any

import pytest

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("demo") / "demo.json"
    command = [sys.executable, "-m", "demos.main_job", "--json", str(path)]
    # Without a limit: a demo gives up by itself where nothing changes any more.
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_the_four_jobs_take_their_turns_and_every_check_passes(report):
    assert (report["schema"], report["name"], report["ok"]) == ("trainmaster.report/1", "demo", True)
    jobs = {one["job"][:4] for one in report["facts"]["transitions"]}
    assert jobs == {"job1", "job2", "job3", "job4"}


def test_the_job_that_heard_sigterm_trained_no_step_twice(report):
    first, second = [one for one in report["facts"]["attempts"] if one["job"].startswith("job1")]
    assert (first["status"], second["status"]) == ("Stopped", "Completed")
    assert second["first_step"] == first["last_step"] + 1
    assert [step for step, _ in second["losses"]] == list(range(second["first_step"], 151))


def test_the_job_in_script_mode_lost_what_no_checkpoint_held(report):
    script = report["facts"]["script_mode"]
    first, second = script["attempts"]
    assert script["interval"] == 10
    assert script["steps_lost"] == first["last_step"] + 1 - second["first_step"]
    assert 0 <= script["steps_lost"] <= 10
