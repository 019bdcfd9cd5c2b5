"""The real program over spoiled checkpoints, and how long a resume of the small model takes."""

import json
import random

import pytest

from benchmarks.training.proof.spoil import Spoiling, spoil
from tests.integration.training.attempts import Job
from training.metrics import event_in

_OPTIONS = ("--preset", "tiny", "--batch_size", "2", "--sequence_length", "32", "--checkpoint_every", "2")
_RESUME_SECONDS = 2.0
"""After the import, of the model `tiny`."""


@pytest.mark.thorough
def test_M1_M2_the_program_goes_back_and_ends_where_there_is_nothing_to_go_back_to(tmp_path) -> None:
    job = Job.under(tmp_path / "job", *_OPTIONS)
    trained = job.run("--steps", "4")
    assert trained.exit_code == 0, trained.errors
    source = random.Random(62)
    spoil(job.checkpoints / "step-00000004", Spoiling.FLIP, source)
    resumed = job.run("--steps", "4")
    assert resumed.exit_code == 0, resumed.errors
    assert resumed.resumed_from is not None
    assert resumed.resumed_from[0] == 2
    assert resumed.losses == {step: loss for step, loss in trained.losses.items() if step > 2}
    assert any(line.startswith("skipping torn checkpoint step-00000004: ") for line in resumed.lines)
    status = json.loads((job.checkpoints / "status.json").read_bytes())
    assert [one["checkpoint"] for one in status["skipped"]] == ["step-00000004"]
    (event,) = (found for line in resumed.lines if (found := event_in(line)) and found["kind"] == "resume")
    seconds = [value for name, value in event.items() if name.endswith("_s") and isinstance(value, float)]
    assert len(seconds) == 6
    assert sum(seconds) <= _RESUME_SECONDS

    for name in ("step-00000002", "step-00000004"):
        spoil(job.checkpoints / name, Spoiling.GARBAGE, source)
    files = {path: path.read_bytes() for path in job.checkpoints.rglob("*.*") if path.is_file()}
    refused = job.run("--steps", "6")
    assert refused.exit_code == 1
    failure = (job.root / "output/failure").read_text()
    assert "no checkpoint can be read: step-00000004: " in failure
    assert "; step-00000002: " in failure
    assert {path: path.read_bytes() for path in files} == files
