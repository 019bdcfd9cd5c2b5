"""An account whose quota is below the pool: what it refuses delays nobody else, and stops nobody."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.e2e.plane import (
    INSTANCE_TYPE,
    Document,
    Plane,
    eventually,
    pool,
    running_plane,
    tags,
    until_exists,
)

pytestmark = pytest.mark.thorough

CAPACITY, QUOTA = 8, 4
WITHIN_SECONDS = {"kind": 180, "harsh": 600}
"""Of the twin's clock. In the harsh world one start a second is taken, and ends are heard minutes late."""
_STEP_SECONDS = 5


@pytest.fixture(params=["kind", "harsh"])
def world(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def plane(world: str, tmp_path: Path) -> Iterator[Plane]:
    options = ("--clock", "manual", "--speed", "60", "--world", world)
    with running_plane(tmp_path, *options, policy=pool(CAPACITY)) as running:
        running.control("/quota", {"instance_type": INSTANCE_TYPE, "instances": QUOTA})
        yield running


def wide(plane: Plane, **more: object) -> Document:
    resources = {"InstanceType": INSTANCE_TYPE, "InstanceCount": CAPACITY, "VolumeSizeInGB": 10}
    return plane.request("wide", ["true"], ResourceConfig=resources, **more)


def pass_until_completed(plane: Plane, names: list[str], within_seconds: int) -> None:
    """Move the clock; it stands while containers run, which they do in the machine's time."""
    for passed in count(step=_STEP_SECONDS):
        eventually(lambda: sum(containers(plane, name) for name in names), lambda running: running == 0)
        states = {name: plane.job(name)["state"] for name in names}
        if set(states.values()) == {"completed"}:
            return
        assert passed < within_seconds, states
        plane.clock(_STEP_SECONDS)


def containers(plane: Plane, name: str) -> int:
    """Of a job, those that run now."""
    events = [one["event"] for one in plane.processes(name)]
    return events.count("start") - events.count("exit")


def refusals(plane: Plane) -> list[Document]:
    return [
        call for call in plane.calls("CreateTrainingJob") if call["error_code"] == "ResourceLimitExceeded"
    ]


def test_a_job_wider_than_the_accounts_quota_delays_nobody(plane: Plane, world: str) -> None:
    plane.add(wide(plane))
    names = [f"small-{number}" for number in range(6)]
    for name in names:
        plane.add(plane.request(name, ["true"]))
    pass_until_completed(plane, names, WITHIN_SECONDS[world])
    assert refusals(plane)
    assert plane.job("wide")["waiting"]["code"] == "account-limit"


def test_a_job_that_the_account_has_refused_stops_nobody_whatever_its_priority(
    plane: Plane, world: str, tmp_path: Path
) -> None:
    plane.add(wide(plane, Tags=tags(priority="100")))
    plane.clock(0)
    assert refusals(plane)
    end = tmp_path / "end"
    running = [f"running-{number}" for number in range(QUOTA)]
    for name in running:
        plane.add(plane.request(name, until_exists(end)))
    for _ in range(WITHIN_SECONDS[world] // _STEP_SECONDS):
        plane.clock(_STEP_SECONDS)
        wide_one = plane.job("wide")
        assert wide_one["state"] == "starting" or wide_one["waiting"]["code"] == "account-limit"
    assert plane.calls("StopTrainingJob") == []
    assert {name: plane.job(name)["state"] for name in running} == dict.fromkeys(running, "running")
    assert plane.control("/world", {"set": {}})["killed_invocations"] == {}
    end.touch()
