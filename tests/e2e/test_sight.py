"""What the API says of the past, held to the twin's journal and to its own list of training jobs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.e2e.plane import INSTANCE_TYPE, Document, Plane, pool, running_plane, tags, until_exists
from tests.e2e.signing import Call, send

pytestmark = pytest.mark.thorough

STEP = timedelta(minutes=1)
ROUNDING = 0.002
"""Of a mean number of instances: an answer may round it, and instants have milliseconds."""
_SPOT = "spot"
_ON_DEMAND = "on-demand"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evening:
    """What a pool of two instances went through; the clock stands."""

    plane: Plane
    began: datetime
    ended: datetime

    def history(self) -> Document:
        return answer(self.plane, "/pools/history", **self._window(), step=f"{STEP.total_seconds():.0f}")

    def timeline(self) -> Document:
        return answer(self.plane, "/timeline", **self._window())

    def _window(self) -> dict[str, str]:
        return {"pool": "main", "from": text(self.began), "to": text(self.ended)}


def answer(plane: Plane, path: str, **query: str) -> Document:
    found = plane.call("GET", f"{path}?{urlencode(sorted(query.items()))}")
    assert found.status == 200, found.body
    document: Document = found.document
    return document


def text(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def instant(said: str) -> datetime:
    return datetime.fromisoformat(said)


def now_of(plane: Plane) -> datetime:
    return instant(plane.control("/clock", {"advance_seconds": 0})["clock"])


def full_minute(plane: Plane) -> datetime:
    now = now_of(plane)
    plane.clock(60 - now.second - now.microsecond / 1e6)
    return now_of(plane).replace(microsecond=0)


@pytest.fixture(scope="module")
def evening(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evening]:
    """Two run, two wait, one of those is cancelled, one preempts, spot beside; then all but one end."""
    folder = tmp_path_factory.mktemp("sight")
    policy = pool(2)
    policy["pools"][0]["warm_pool"] = {"keep_alive": "10m", "retain": "10m"}
    with running_plane(folder, "--clock", "manual", policy=policy) as plane:
        began = full_minute(plane)
        ends = _play(plane, folder)
        for end in ends[:-1]:
            end.touch()
        for _ in range(4):
            plane.clock(75)
        yield Evening(plane=plane, began=began, ended=full_minute(plane))
        for end in ends:
            end.touch()


def _play(plane: Plane, folder: Path) -> list[Path]:
    ends = [folder / f"end-{number}" for number in range(6)]
    for number, name in enumerate(("first", "second", "third", "fourth")):
        plane.add(plane.request(name, until_exists(ends[number])))
        plane.clock(25)
    plane.add(plane.request("saved", until_exists(ends[4]), **_spot(plane)))
    plane.clock(130)
    assert plane.call("DELETE", "/jobs/fourth").status == 202
    plane.clock(70)
    urgent = plane.request("urgent", until_exists(ends[5]), Tags=tags(priority="900"))
    plane.add(urgent)
    plane.clock(200)
    assert plane.job("urgent")["state"] == "running", plane.queue()
    return ends


def _spot(plane: Plane) -> dict[str, Any]:
    bucket = plane.twin.ready["bucket"]
    return {
        "EnableManagedSpotTraining": True,
        "StoppingCondition": {"MaxRuntimeInSeconds": 3600, "MaxWaitTimeInSeconds": 7200},
        "CheckpointConfig": {"S3Uri": f"s3://{bucket}/checkpoints/saved"},
    }


def test_used_and_warm_of_the_history_are_the_sums_over_the_timeline(evening: Evening) -> None:
    timeline = evening.timeline()
    assert timeline["next_token"] is None
    used, warm = False, False
    for point in evening.history()["points"]:
        at = instant(point["at"])
        for capacity_type in (_ON_DEMAND, _SPOT):
            said = point[capacity_type].get(INSTANCE_TYPE, {"used": 0, "warm": 0})
            expected = _mean(evening, timeline["attempts"], at, capacity_type)
            assert said["used"] == pytest.approx(expected, abs=ROUNDING), (point, capacity_type)
            used = used or expected > 0
        kept = sum(
            one["instances"] * _share(evening, at, one["since"], one["until"]) for one in timeline["warm"]
        )
        found = point[_ON_DEMAND].get(INSTANCE_TYPE, {"warm": 0})["warm"]
        assert found == pytest.approx(kept, abs=ROUNDING), point
        warm = warm or kept > 0
    assert used
    assert warm


def _mean(evening: Evening, attempts: list[Document], at: datetime, capacity_type: str) -> float:
    shares = (
        float(one["instances"].get(INSTANCE_TYPE, 0))
        * _share(evening, at, one["claimed_at"], one["ended_at"])
        for one in attempts
        if one["capacity_type"] == capacity_type
    )
    return sum(shares)


def _share(evening: Evening, at: datetime, since: str, until: str | None) -> float:
    """Of the step that begins at an instant."""
    step_ends = min(at + STEP, evening.ended)
    ends = min(step_ends, instant(until) if until else evening.ended)
    shared = ends - max(at, instant(since))
    return max(shared, timedelta()) / (step_ends - at)


def test_waiting_is_submissions_less_claims_and_withdrawals_of_the_journal(evening: Evening) -> None:
    """In each minute in which nothing of them happened; a preempted job was submitted once more."""
    changes = sorted(one for one in _changes(evening) if one[1])
    compared = 0
    for point in evening.history()["points"]:
        at = instant(point["at"])
        if at + STEP > evening.ended or any(at <= one < at + STEP for one, _ in changes):
            continue
        expected = sum(step for one, step in changes if one < at)
        said = point[_ON_DEMAND].get(INSTANCE_TYPE, {"waiting": 0})["waiting"]
        assert said == pytest.approx(expected, abs=ROUNDING), (point, changes)
        compared += expected > 0
    assert compared >= 2


def _changes(evening: Evening) -> Iterator[tuple[datetime, int]]:
    """When a job of the on-demand queue was added to those that wait (1) or left them (-1)."""
    for one in evening.plane.twin.records():
        if one["kind"] == "call" and one["status"] < 300 and instant(one["clock"]) >= evening.began:
            yield instant(one["clock"]), _step(one["operation"], one["params"])
    for attempt in evening.timeline()["attempts"]:
        if attempt["preempted_by"]:
            yield instant(attempt["ended_at"]), 1


def _step(operation: str, params: Mapping[str, Any]) -> int:
    if "EnableManagedSpotTraining" in str(params):  # a REST call has them below its body
        return 0
    return {"POST /add-job": 1, "CreateTrainingJob": -1, "DELETE /jobs/fourth": -1}.get(operation, 0)


def test_training_and_end_of_each_attempt_are_the_training_jobs_to_the_second(evening: Evening) -> None:
    seen = {
        one["name"]: one
        for one in _training_jobs(evening.plane)
        if instant(one["created_at"]) >= evening.began
    }
    aliases = {}
    for name in ("first", "second", "third", "saved", "urgent"):
        for attempt in evening.plane.job(name)["attempts"]:
            aliases[name, attempt["attempt"]] = attempt["training_job_name"]
    attempts = evening.timeline()["attempts"]
    assert {(one["job"], one["attempt"]) for one in attempts} == set(aliases)
    for one in attempts:
        real = seen[aliases[one["job"], one["attempt"]]]
        assert _second(one["training_since"]) == _second(_began_training(real)), one
        assert _second(one["ended_at"]) == _second(real["ended_at"]), one
    (preempted,) = [one for one in attempts if one["preempted_by"]]
    assert preempted["preempted_by"] == "urgent"
    assert preempted["end"] is not None


def _training_jobs(plane: Plane) -> list[Mapping[str, Any]]:
    found = send(Call(method="GET", url=f"{plane.twin.ready['control_url']}/training-jobs"))
    jobs: list[Mapping[str, Any]] = found.document["training_jobs"]
    return jobs


def _began_training(job: Mapping[str, Any]) -> str | None:
    return next((one["start"] for one in job["transitions"] if one["status"] == "Training"), None)


def _second(said: str | None) -> datetime | None:
    return instant(said).replace(microsecond=0) if said else None
