"""What is kept of how fast attempts trained."""

from typing import Any

import pytest
from trainmaster.core.durations.work_speeds import LATEST, WorkSpeed, work_kind
from trainmaster.core.jobs.instances import Capacity, CapacityType

from tests.builders import NOON, A, B, minutes, of
from tests.integration.ports.plane import Plane, ended

KIND = work_kind("default", "bert", None, "0a1b")


def train(plane: Plane, name: str, per_second: float, **fields: Any) -> None:
    """One job of the kind that trained for half an hour unless the test says otherwise."""
    news = {key: fields.pop(key) for key in ("trained", "status") if key in fields}
    speed = WorkSpeed(unit="tokens", per_1000_s=round(1000 * per_second))
    job = plane.running(name, **{"work_kind": KIND} | fields)
    plane.store.commit([ended(job, speed=speed, **news)], at=NOON)


def speeds(plane: Plane, kind: str = KIND, team: str = "default") -> list[tuple[str, int]]:
    return sorted((run.shape, run.speed.per_1000_s) for run in plane.reader.work_speeds("main", team, kind))


def test_an_ended_attempt_leaves_its_speed_with_its_kind_and_shape(plane: Plane) -> None:
    spot = Capacity(A, CapacityType.SPOT)
    train(plane, "a", 10.0)
    train(plane, "b", 30.0, vector={spot: 4})
    train(plane, "c", 20.0, vector=of(2, B), status="Failed")
    assert speeds(plane) == [(f"{spot}=4", 30_000), (f"{A}=1", 10_000), (f"{B}=2", 20_000)]
    assert speeds(plane, team="vision") == speeds(plane, work_kind("default", "gpt", None, None)) == []
    (run, *_) = plane.reader.work_speeds("main", "default", KIND)
    assert (run.settings, run.ended_at) == ("0a1b", NOON)


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"trained": minutes(4)}, id="it trained too short"),
        pytest.param({"work_kind": None}, id="an earlier release submitted it"),
        pytest.param({"vector": {**of(1), **of(1, B)}}, id="several types did the work"),
    ],
)
def test_an_attempt_that_says_nothing_reliable_leaves_nothing(plane: Plane, fields: dict[str, Any]) -> None:
    train(plane, "a", 10.0, **fields)
    assert speeds(plane) == []


def test_the_last_runs_of_a_shape_are_kept_and_those_of_others_with_them(plane: Plane) -> None:
    train(plane, "other", 1.0, vector=of(1, B))
    for number in range(LATEST + 2):
        train(plane, f"job{number}", float(number + 10))
    kept = [(f"{A}=1", 1000 * (number + 10)) for number in range(2, LATEST + 2)]
    assert speeds(plane) == sorted([*kept, (f"{B}=1", 1000)])


def test_the_record_of_a_past_attempt_has_its_speed(plane: Plane) -> None:
    train(plane, "a", 10.0)
    (attempt,), _ = plane.reader.story(plane.job("a"))
    assert attempt.speed == WorkSpeed(unit="tokens", per_1000_s=10_000)
