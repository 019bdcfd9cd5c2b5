"""Group J: one row cannot be understood. It is set aside and stops what it names, nothing else."""

from typing import Any

import pytest

from tests.builders import A, minutes
from tests.faults.conftest import NewWorld
from tests.faults.scenes import code_of, ends, trains
from tests.faults.spoiling import (
    ON_B,
    QUEUE_ROWS,
    TWO_POOLS,
    Change,
    gone,
    lacks,
    notes,
    rows_of,
    says,
    set_aside,
    spoil,
)
from tests.integration.messages import proxy_event, request
from tests.integration.world import World

TWO = {"InstanceType": A, "InstanceCount": 2, "VolumeSizeInGB": 10}
TEAMS = {
    "teams": [
        {"name": "red", "principals": ["arn:aws:iam::123456789012:user/ada"], "roles": "any"},
        {"name": "blue", "principals": ["arn:aws:iam::123456789012:user/ada"], "roles": "any"},
    ],
}
KEEPING = {"pools": [{"name": "main", "capacity": {A: 2}, "warm_pool": {"keep_alive": "10m"}}]}


@pytest.fixture
def plane(new_world: NewWorld) -> World:
    return new_world(TWO_POOLS)


def of_team(team: str, priority: int = 0) -> dict[str, Any]:
    return {"Tags": [{"Key": "team", "Value": team}, {"Key": "priority", "Value": str(priority)}]}


def a_job_of_the_other_pool_starts(world: World) -> None:
    world.submit("beside", ResourceConfig=ON_B)
    world.wake("other")
    assert world.states("beside") == ["running"]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(says(state="archived"), id="a state nobody knows"),
        pytest.param(lacks("spec"), id="no spec"),
        pytest.param(lacks("ver"), id="no ver"),
        pytest.param(says(score="soon"), id="a text for a number"),
    ],
)
def test_J1_a_job_row_at_the_head_of_its_lane_is_passed_over_and_left_as_it_is(
    plane: World, change: Change, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(3):
        plane.submit(f"job{number}")
    left = spoil(plane, "J#job0", "job", change)
    capsys.readouterr()
    plane.wake()
    assert plane.states("job1", "job2") == ["running", "running"]
    assert rows_of(plane, "J#job0")["job"] == left
    assert any(note.startswith("J#job0/job: ") for note in notes(capsys))
    assert [job["name"] for job in plane.api("GET", "/jobs")["jobs"]] == ["job1", "job2"]
    answer = plane.api("GET", "/jobs/job0")
    assert (answer["status"], answer["title"]) == (500, "Row not understood")
    assert set_aside(plane)["all"] == 1
    a_job_of_the_other_pool_starts(plane)


def test_J1_more_of_them_than_a_look_reads_do_not_hide_those_behind(plane: World) -> None:
    for number in range(12):
        plane.submit(f"job{number:02d}")
    for number in range(11):
        spoil(plane, f"J#job{number:02d}", "job", lacks("spec"))
    plane.wake()
    assert plane.states("job11") == ["running"]


def test_J1_nobody_is_stopped_for_a_job_that_cannot_be_read_nor_in_vain(plane: World) -> None:
    plane.submit("low", ResourceConfig=TWO)
    plane.wake()
    trains(plane, "low")
    plane.submit("broken", priority=9, ResourceConfig=TWO)
    spoil(plane, "J#broken", "job", lacks("ver"))
    plane.wake()
    assert plane.states("low") == ["running"]
    plane.submit("high", priority=5, ResourceConfig=TWO)
    spoil(plane, "J#low", "job", lacks("ver"))
    plane.wake()
    assert plane.sagemaker.jobs["low"].stops == 0
    assert code_of(plane, "high") in {"ahead", "capacity"}


@pytest.mark.parametrize(
    "change", [pytest.param(gone, id="gone"), pytest.param(says(body=b"plain"), id="not gzip")]
)
def test_J2_a_job_whose_request_cannot_be_read_fails_and_the_next_starts(
    plane: World, change: Change
) -> None:
    plane.submit("job0", ResourceConfig=TWO)
    plane.submit("job1", ResourceConfig=TWO)
    spoil(plane, "J#job0", "request", change)
    plane.wake()
    assert plane.states("job0", "job1") == ["failed", "running"]
    reason = plane.api("GET", "/jobs/job0")["reason"]
    assert reason["code"] == "failed-to-start"
    assert "its request cannot be read" in reason["message"]
    plane.check("job0", "job1")


def test_J2_nobody_is_stopped_for_a_request_that_cannot_be_read(plane: World) -> None:
    plane.submit("low", ResourceConfig=TWO)
    plane.wake()
    trains(plane, "low")
    plane.submit("high", priority=9, ResourceConfig=TWO)
    spoil(plane, "J#high", "request", gone)
    plane.wake()
    assert plane.states("low", "high") == ["running", "failed"]


def test_J3_the_slot_of_a_running_row_stays_counted_and_it_is_nobodys_victim(plane: World) -> None:
    plane.submit("job0")
    plane.submit("job1")
    plane.wake()
    trains(plane, "job0", "job1")
    left = spoil(plane, "R#main", "job0", lacks("state"))
    plane.submit("high", priority=9)
    plane.submit("wide", priority=8, ResourceConfig=TWO)
    plane.wake()
    assert plane.states("job0", "job1", "high") == ["running", "preempting", "pending"]
    plane.sagemaker.end("job1", "Stopped")
    plane.a_minute_passes()
    assert plane.states("job0", "high") == ["running", "running"], "reconciled, though no event came"
    assert rows_of(plane, "R#main")["job0"] == left
    assert set_aside(plane) == {"main": 1, "other": 0, "all": 1}
    ends(plane, "job0")
    assert "job0" not in rows_of(plane, "R#main"), "its end is an end like any other"
    a_job_of_the_other_pool_starts(plane)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lacks("shapes"), id="no shapes"),
        pytest.param(says(score="x"), id="a text for a number"),
        pytest.param(says(name="somebody-else"), id="of another name"),
    ],
)
def test_J4_the_next_of_the_lane_starts_where_a_queue_row_cannot_be_understood(
    plane: World, change: Change
) -> None:
    plane.submit("job0", ResourceConfig=TWO)
    plane.submit("job1", ResourceConfig=TWO)
    left = [spoil(plane, row, "job0", change) for row in QUEUE_ROWS]
    plane.wake()
    assert plane.states("job1") == ["running"]
    assert all(row in plane.items() for row in left)
    assert set_aside(plane)["main"] >= 2
    assert [job["name"] for job in plane.api("GET", "/jobs")["jobs"]] == ["job1"]


@pytest.mark.parametrize("row", QUEUE_ROWS)
def test_J4_a_job_starts_in_its_turn_as_long_as_one_order_has_a_row_of_it(plane: World, row: str) -> None:
    plane.submit("job0", ResourceConfig=TWO)
    plane.submit("job1", ResourceConfig=TWO)
    spoil(plane, row, "job0", lacks("shapes"))
    plane.wake()
    assert plane.states("job0", "job1") == ["running", "pending"]
    assert {item["sk"]["S"][-4:] for item in plane.items() if item["pk"]["S"].startswith(QUEUE_ROWS)} == {
        "job1"
    }


def test_J4_a_queue_row_whose_job_is_gone_is_removed_and_the_next_starts(plane: World) -> None:
    plane.submit("job0", ResourceConfig=TWO)
    plane.submit("next", ResourceConfig=TWO)
    spoil(plane, "J#job0", "job", gone)
    plane.wake()
    assert plane.states("next") == ["running"]
    assert [item for item in plane.items() if item["pk"]["S"].startswith(QUEUE_ROWS)] == []


def test_J4_a_queue_row_whose_job_stands_elsewhere_is_removed_and_the_next_starts(plane: World) -> None:
    plane.submit("job0")
    rows = [item for item in plane.items() if item["pk"]["S"].startswith(QUEUE_ROWS)]
    plane.wake()
    plane.put_back([*plane.items(), *rows])
    plane.submit("next")
    plane.wake()
    assert plane.states("job0", "next") == ["running", "running"]
    assert plane.sagemaker.creates == ["job0", "next"]
    assert [item for item in plane.items() if item["pk"]["S"].startswith(QUEUE_ROWS)] == []


def test_J5_others_that_are_due_come_back_beside_a_parked_row_that_cannot_be_understood(
    plane: World,
) -> None:
    for name in ("job0", "job1"):
        plane.submit(name)
    plane.sagemaker.refuse["CreateTrainingJob"] = [("InternalFailure", 500)] * 9
    plane.wake()
    assert len(rows_of(plane, "B#main")) == 2
    plane.sagemaker.refuse.clear()
    spoil(plane, "B#main", "job0", lacks("shapes"))
    plane.now += minutes(60)
    plane.wake()
    assert plane.states("job0", "job1") == ["pending", "running"]


def test_J6_a_hold_or_limit_that_cannot_be_understood_counts_for_nothing(plane: World) -> None:
    plane.submit("job0")
    spoil(
        plane,
        "P#main",
        "counters",
        says(
            hold__ghost={"preemptor": "somebody"},
            hold__other={"preemptor": "else", "vector": f"{A}=2", "victims": []},
            **{f"limit__{A}": {"limit": "none"}},
        ),
    )
    plane.wake()
    assert plane.states("job0") == ["running"]
    assert list(plane.check("job0").values()) == [1]
    assert set_aside(plane)["main"] == 3


def test_J7_instances_of_a_warm_pool_that_cannot_be_understood_stay_counted(new_world: NewWorld) -> None:
    plane = new_world(KEEPING)
    plane.submit("job0")
    plane.wake()
    trains(plane, "job0")
    plane.sagemaker.end("job0", "Completed")
    plane.tell("job0")
    spoil(plane, "W#main", "job0", lacks("expires_at"))
    plane.submit("job1", ResourceConfig={**TWO, "InstanceCount": 1})
    plane.submit("job2", RoleArn="arn:aws:iam::123456789012:role/other")
    plane.wake()
    assert sorted(plane.states("job1", "job2")) == ["pending", "running"]
    assert plane.wiring.reader.pool_state("main").warm != {}
    assert set_aside(plane)["main"] == 1


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(gone, id="gone"),
        pytest.param(says(waiting="many"), id="a text for a number"),
        pytest.param(says(waiting=-1), id="less than nothing"),
    ],
)
def test_J8_O18_other_teams_start_and_its_own_is_told_who_must_repair(
    new_world: NewWorld, change: Change
) -> None:
    plane = new_world(TWO_POOLS | TEAMS)
    plane.submit("red0", **of_team("red"))
    plane.submit("blue0", **of_team("blue"))
    spoil(plane, "T#main", "red", change)
    plane.wake()
    assert plane.states("red0", "blue0") == ["pending", "running"]
    answer = plane.submit("red1", **of_team("red"))
    assert (answer["status"], answer["title"]) == (503, "Repair needed")
    assert "try again" not in str(answer).lower()
    assert "trying again does not help" in answer["detail"]
    assert "`trainmaster policy pause`, `trainmaster repair --apply`" in answer["detail"]
    raw = plane.call("api", proxy_event("POST", "/add-job", request("red1", **of_team("red"))))
    assert "Retry-After" not in raw["multiValueHeaders"]
    assert plane.submit("blue1", **of_team("blue"))["status"] == 201
    assert plane.submit("red2", ResourceConfig=ON_B, **of_team("red"))["status"] == 201, "new in that pool"
    assert set_aside(plane) == {"main": 1, "other": 0, "all": 1}


def test_J8_a_team_row_that_an_increment_made_anew_is_not_taken_for_the_whole(new_world: NewWorld) -> None:
    plane = new_world(TWO_POOLS | TEAMS)
    plane.submit("red0", **of_team("red"))
    plane.wake()
    trains(plane, "red0")
    spoil(plane, "T#main", "red", gone)
    ends(plane, "red0")
    assert plane.states("red0") == ["completed"]
    assert plane.submit("red1", **of_team("red"))["status"] == 503


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(gone, id="gone"),
        pytest.param(lacks(f"used#{A}"), id="what is used is missing"),
        pytest.param(says(**{f"used__{A}": "two"}), id="a text for a number"),
        pytest.param(says(**{f"used__{A}": -1}), id="less than nothing"),
    ],
)
def test_J9_nothing_starts_while_what_is_used_is_not_known(plane: World, change: Change) -> None:
    plane.submit("job0")
    plane.wake()
    spoil(plane, "P#main", "counters", change)
    plane.submit("job1")
    plane.wake()
    assert plane.states("job0", "job1") == ["running", "pending"]
    assert code_of(plane, "job1") == "recount"
    (pool, _) = plane.api("GET", "/pools")["pools"]
    assert (pool["recount"]["code"], pool["set_aside"]) == ("recount", 1)
    a_job_of_the_other_pool_starts(plane)


def test_J9_an_end_in_between_does_not_make_room_out_of_nothing(plane: World) -> None:
    plane.submit("job0")
    plane.submit("job1")
    plane.wake()
    trains(plane, "job0", "job1")
    spoil(plane, "P#main", "counters", lacks(f"used#{A}"))
    ends(plane, "job0")
    ends(plane, "job1")
    plane.submit("job2")
    plane.wake()
    assert plane.states("job0", "job1", "job2") == ["completed", "completed", "pending"]
    assert code_of(plane, "job2") == "recount"


def test_J9_counters_that_are_gone_are_0_where_nothing_runs(plane: World) -> None:
    spoil(plane, "P#main", "counters", gone)
    plane.submit("job0")
    plane.wake()
    assert plane.states("job0") == ["running"]


@pytest.mark.parametrize("pool", ["main", "-"])
def test_J10_messages_behind_one_that_cannot_be_understood_are_done(plane: World, pool: str) -> None:
    plane.submit("job0")
    plane.wake()
    trains(plane, "job0")
    plane.sagemaker.end("job0", "Completed")
    plane.tell("job0")
    bad = {"pk": {"S": f"E#{pool}"}, "sk": {"S": "0"}, "id": {"S": "0"}, "kind": {"S": "sing"}}
    plane.put_back([*plane.items(), bad])
    plane.wake()
    plane.wake("-")
    assert plane.messages.kinds() == ["Job Completed"]
    assert bad in plane.items()
    plane.submit("job1")
    a_job_of_the_other_pool_starts(plane)
    plane.wake()
    assert plane.states("job1") == ["running"]
    assert set_aside(plane)["all"] == 1
