"""J11: under pause a repair rebuilds counters, teams, queue, parked and running rows from the jobs."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.builders import A, minutes
from tests.faults.conftest import NewWorld
from tests.faults.scenes import ends, trains
from tests.faults.spoiling import ON_B, TWO_POOLS, Change, gone, lacks, rows_of, says, set_aside, spoil
from tests.integration.rows import Item
from tests.integration.world import Saved, World

NAMES = ("run0", "run1", "wait0", "wait1", "wait2", "wait3", "held0", "beside", "over", "backs-off")
ROWS_OF_LISTS = ("O#", "OT#", "Q#", "B#", "R#")
TWO = {"InstanceType": A, "InstanceCount": 2, "VolumeSizeInGB": 10}


@pytest.fixture(scope="module")
def kept() -> list[Saved]:
    """The plane, once it was made."""
    return []


@pytest.fixture
def plane(new_world: NewWorld, kept: list[Saved]) -> World:
    """Jobs that run, wait in two lanes, are held, back off and are over; in two pools."""
    world = new_world(TWO_POOLS)
    if kept:
        world.restore(kept[0])
    else:
        fill(world)
        kept.append(world.save())
    return world


def fill(world: World) -> None:
    world.submit("over")
    world.wake()
    trains(world, "over")
    ends(world, "over")
    world.submit("backs-off", ResourceConfig=TWO)
    world.sagemaker.refuse["CreateTrainingJob"] = [("InternalFailure", 500)] * 9
    world.wake()
    world.sagemaker.refuse.clear()
    for name in ("run0", "run1", "wait0", "wait1"):
        world.submit(name)
        world.wake()
    for name in ("wait2", "wait3"):
        world.submit(name, ResourceConfig=TWO)
    world.submit("held0")
    assert world.patch("held0", held=True)["status"] == 200
    world.submit("beside", ResourceConfig=ON_B)
    world.wake("other")
    trains(world, "run0", "run1", "beside")
    world.check(*NAMES)


def pause(world: World, *, paused: bool = True) -> None:
    assert world.api("PUT", "/policy/paused", {"paused": paused})["status"] == 200


def repair(world: World, *, apply: bool) -> dict[str, Any]:
    assert world.api("POST", "/repair", {"apply": apply})["status"] == 202
    world.reconcile()
    answer = world.api("GET", "/repair")
    assert (answer["state"], answer["apply"]) == ("done", apply)
    return answer


def test_J11_without_a_fault_there_is_nothing_to_repair(plane: World) -> None:
    before = {(item["pk"]["S"], item["sk"]["S"]): item for item in of_jobs(plane)}
    found = repair(plane, apply=False)
    assert (found["differences"], found["set_aside"], found["jobs_read"]) == ([], [], len(NAMES))
    pause(plane)
    assert repair(plane, apply=True)["differences"] == []
    after = {(item["pk"]["S"], item["sk"]["S"]): item for item in of_jobs(plane)}
    assert {key: row for key, row in after.items() if key[0][0] not in "PT"} == {
        key: row for key, row in before.items() if key[0][0] not in "PT"
    }


def test_J11_without_pause_it_is_refused_and_a_dry_run_is_not(plane: World) -> None:
    answer = plane.api("POST", "/repair", {"apply": True})
    assert (answer["status"], answer["errors"][0]["field"]) == (409, "apply")
    assert plane.api("POST", "/repair", {"apply": False})["status"] == 202
    assert plane.api("GET", "/repair")["state"] == "running"
    pause(plane)
    assert plane.api("POST", "/repair", {"apply": True})["status"] == 409, "another one runs"


@pytest.mark.parametrize("body", [{}, {"apply": "yes"}, {"apply": True, "pool": "main"}])
def test_J11_a_request_that_says_something_else_is_refused(plane: World, body: dict[str, Any]) -> None:
    assert plane.api("POST", "/repair", body)["status"] == 400


def test_J11_a_dry_run_says_what_it_would_change_and_changes_nothing(plane: World) -> None:
    spoil(plane, "P#main", "counters", says(**{f"used__{A}": 1}))
    spoil(plane, "R#main", "run0", gone)
    before = of_jobs(plane)
    found = repair(plane, apply=False)["differences"]
    assert {"row": "P#main/counters", "field": f"used#{A}", "stored": "1", "computed": "2"} in found
    assert [one["row"] for one in found if one["field"] == "*"] == ["R#main/run0"]
    assert of_jobs(plane) == before


def of_jobs(world: World) -> list[Item]:
    kinds = ("J#", "L#", *ROWS_OF_LISTS, "T#", "P#")
    rows = (item for item in world.items() if item["pk"]["S"].startswith(kinds))
    return [item for item in rows if item["sk"]["S"] != "front"]


def spoilt_rows(world: World) -> Iterator[tuple[str, str]]:
    for item in of_jobs(world):
        if not item["pk"]["S"].startswith("J#"):
            yield item["pk"]["S"], item["sk"]["S"]


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(1, 20))]
)
def test_J11_whatever_rows_were_spoilt_counters_are_sums_again_and_all_goes_on(
    plane: World, seed: int
) -> None:
    """Rows deleted, cut and doubled at random: any but the jobs' own."""
    chance = random.Random(seed)
    for pk, sk in chance.sample(sorted(spoilt_rows(plane)), k=5):
        items = [dict(item) for item in plane.items()]
        (row,) = [item for item in items if (item["pk"]["S"], item["sk"]["S"]) == (pk, sk)]
        items.remove(row)
        plane.put_back([*items, *spoilt(row, chance)])
    pause(plane)
    repair(plane, apply=True)
    plane.check(*NAMES)
    assert repair(plane, apply=False)["differences"] == []
    assert set_aside(plane)["all"] == 0
    pause(plane, paused=False)
    assert plane.patch("held0", held=False)["status"] == 200
    for _ in range(8):
        for name, job in plane.sagemaker.live().items():
            if job.secondary == "Starting":
                plane.sagemaker.train(name)
            plane.sagemaker.end(name, "Completed")
        plane.a_minute_passes()
        plane.wake("other")
    assert set(plane.states(*NAMES)) == {"completed"}


def spoilt(row: Item, chance: random.Random) -> list[Item]:
    """What is left of a row."""
    names = sorted(row.keys() - {"pk", "sk"})
    match chance.randrange(4):
        case 0:
            return []
        case 1:
            return [lacks(*chance.sample(names, k=(len(names) + 1) // 2))(row) or {}]
        case 2:
            return [row | {chance.choice(names): {"S": "?"}}]
        case _:
            double = row | {"sk": {"S": f"{row['sk']['S']}x"}}
            return [row, double] if row["pk"]["S"].startswith(ROWS_OF_LISTS) else [row]


@pytest.mark.parametrize("row", ["O#main", "OT#main", "Q#main"])
@pytest.mark.parametrize("change", [gone, lacks("ver"), says(ver="?"), says(score=7)])
def test_J11_each_order_of_the_queue_has_its_row_again(plane: World, row: str, change: Change) -> None:
    before = [item for item in plane.items() if item["pk"]["S"].startswith(row)]
    spoil(plane, row, "wait1", change)
    pause(plane)
    assert {one["row"] for one in repair(plane, apply=True)["differences"]} != set()
    after = [item for item in plane.items() if item["pk"]["S"].startswith(row)]
    assert [without_ver(item) for item in after] == [without_ver(item) for item in before]
    plane.check(*NAMES)


def without_ver(item: Item) -> Item:
    return lacks("ver")(item) or {}


def test_J11_a_job_that_cannot_be_understood_keeps_its_slot_and_is_named(plane: World) -> None:
    spoil(plane, "J#run0", "job", says(state="archived"))
    spoil(plane, "P#main", "counters", gone)
    pause(plane)
    found = repair(plane, apply=True)
    assert [one["key"] for one in found["set_aside"]] == ["J#run0/job"]
    assert "archived" in found["set_aside"][0]["error"]
    assert "run0" in rows_of(plane, "R#main")
    assert rows_of(plane, "P#main")["counters"][f"used#{A}"] == {"N": "2"}


def test_J11_a_repair_goes_on_where_the_time_was_over(plane: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainmaster.adapters.dynamodb.repair_store.PAGE_ROWS", 3)
    spoil(plane, "P#main", "counters", says(**{f"used__{A}": 1}))
    pause(plane)
    assert plane.api("POST", "/repair", {"apply": True})["status"] == 202
    runs = 0
    while plane.api("GET", "/repair")["state"] == "running":
        calls = iter(range(3))
        plane.wiring.reconciler.repair.run(FewSteps(calls))  # type: ignore[arg-type]
        runs += 1
        assert runs < 100
    assert runs > 5
    plane.check(*NAMES)


class FewSteps:
    """A deadline that is over after so many looks at it."""

    def __init__(self, looks: Iterator[int]) -> None:
        self._looks = looks

    @property
    def is_over(self) -> bool:
        return next(self._looks, None) is None


def test_J11_a_pool_that_changes_while_it_is_counted_is_counted_again(plane: World) -> None:
    spoil(plane, "P#main", "counters", says(**{f"used__{A}": 1}))
    pause(plane)
    assert plane.api("POST", "/repair", {"apply": True})["status"] == 202
    plane.meanwhile["BatchGetItem"] = lambda: ends(plane, "run0")
    plane.reconcile()
    plane.now += minutes(1)
    plane.reconcile()
    assert plane.api("GET", "/repair")["state"] == "done"
    plane.check(*NAMES)
