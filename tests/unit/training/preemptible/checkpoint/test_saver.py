import json
from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from tests.unit.training.preemptible.checkpoint.builders import manifest
from training.preemptible.checkpoint.saver import JobState, Status, StatusFile

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


class _Store:
    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def write(self, name: str, content: bytes) -> None:
        self.files[name] = content

    def status(self) -> Mapping[str, object]:
        found: Mapping[str, object] = json.loads(self.files["status.json"])
        return found


def _file(store: _Store, **values: object) -> StatusFile:
    status = Status(**{"step": 0, "steps": 60, "newest": None, **values})  # type: ignore[arg-type]
    return StatusFile(store, status, clock=lambda: NOON)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("saved", "reached", "lost"),
    [
        pytest.param(10, 10, 0, id="all is saved"),
        pytest.param(10, 17, 7, id="what came after the checkpoint is lost"),
        pytest.param(None, 17, 17, id="without a checkpoint all is lost"),
        pytest.param(10, 0, 0, id="a job that failed at once loses nothing"),
    ],
)
def test_what_an_end_loses(saved: int | None, reached: int, lost: int) -> None:
    newest = None if saved is None else manifest(step=saved)
    assert Status(step=reached, steps=60, newest=newest).lost_steps == lost


def test_a_job_without_a_checkpoint_names_none() -> None:
    store = _Store()
    _file(store).ended(JobState.FAILED, step=3, reason="no")
    assert (store.status()["checkpoint"], store.status()["checkpoint_at"]) == (None, None)


def test_a_save_that_comes_through_after_the_end_counts_and_the_end_stays() -> None:
    store = _Store()
    file = _file(store)
    file.ended(JobState.PREEMPTED, step=12, reason="no time")
    assert store.status()["lost_steps"] == 12
    file.published(manifest(step=10))
    assert store.status() == {
        "state": "preempted",
        "step": 12,
        "steps": 60,
        "checkpoint": "step-00000010",
        "checkpoint_at": "2026-11-21T12:00:00.000+00:00",
        "updated_at": "2026-11-21T12:00:00.000+00:00",
        "lost_steps": 2,
        "reason": "no time",
        "carried": {},
        "skipped": [],
    }
