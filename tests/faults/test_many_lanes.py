"""Rows K1 to K4: as many lanes and shapes as a team likes, and nobody is hidden, held up or made to pay."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice, permutations
from typing import Any

import pytest
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.instances import Capacity, Shape
from trainmaster.core.jobs.model import Job, epoch_ms
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.planning.candidates import MAX_KNOWN, MAX_LANES, MAX_SHORT, lane
from trainmaster.core.planning.snapshot import Snapshot, WaitingJob
from trainmaster.core.policy import parse_policy

from local.engine.dynamodb.values import item_bytes
from tests.builders import NOON, A, job, minutes, of
from tests.faults.conftest import NewWorld
from tests.faults.planes import plane
from tests.faults.scenes import ends, trains
from tests.integration.messages import request
from tests.integration.world import World
from tests.memory.store import MemoryJobStore

ADA = "arn:aws:iam::123456789012:user/ada"
TYPES = tuple(f"ml.r{number:02d}n.24xlarge" for number in range(12))
"""So many and so long that a lane of all of them is hashed."""
POLICY = {
    "pools": [{"name": "main", "capacity": {A: 2} | dict.fromkeys(TYPES, 1)}],
    "teams": [{"name": name, "principals": [ADA], "roles": "any"} for name in ("red", "blue")],
}
TWO = {"InstanceType": A, "InstanceCount": 2, "VolumeSizeInGB": 10}
BODY = json.dumps(request("any")).encode()
ROW_BOUND = 20_000
"""Bytes. Source: row K4."""


def tagged(team: str, priority: int = 0, *alternatives: str) -> dict[str, Any]:
    tags = {"team": team, "priority": str(priority)}
    if alternatives:
        tags["trainmaster:alternatives"] = " ".join(f"{one}=1" for one in alternatives)
    return {"Tags": [{"Key": key, "Value": content} for key, content in tags.items()]}


def test_K1_lanes_of_another_team_hide_nobody(new_world: NewWorld) -> None:
    world = new_world(POLICY)
    fill(world)
    for number, types in enumerate(islice(permutations(TYPES, 3), 60)):
        world.submit(f"hides-{number}", **tagged("red", 0, *types))
    for number, all_of_them in enumerate(islice(permutations(TYPES), 15)):
        world.submit(f"hides-long-{number}", **tagged("red", 0, *all_of_them))
    assert max(len(lane(entry.shapes, entry.choice)) for entry in snapshot(world).waiting) <= 200
    world.schedule()
    assert world.submit("urgent", ResourceConfig=TWO, **tagged("blue", 1000))["status"] == 201
    assert "urgent" in {entry.name for entry in snapshot(world).waiting}
    world.schedule()
    assert world.states("fills", "urgent") == ["preempting", "pending"]
    ends(world, "fills", "Stopped")
    assert world.states("urgent") == ["running"]


def fill(world: World) -> None:
    """Team red holds everything there is."""
    world.submit("fills", ResourceConfig=TWO, **tagged("red"))
    for number, kind in enumerate(TYPES):
        world.submit(
            f"fills-{number}",
            ResourceConfig=TWO | {"InstanceType": kind, "InstanceCount": 1},
            **tagged("red"),
        )
    world.schedule()
    trains(world, "fills", *(f"fills-{number}" for number in range(12)))


def snapshot(world: World) -> Snapshot:
    policy = parse_policy(POLICY)
    return world.wiring.reader.snapshot(policy.pools[0], policy=policy, paused=False, now=world.now)


# ---- in memory: the planner and what it is shown


def waits(name: str, *, team: str, after: int, **fields: Any) -> Job:
    score = epoch_ms(NOON) + after
    return job(name, entry_id=f"01{name}", team=team, score=score, ranked_by="24h/1", **fields)


@dataclass(slots=True)
class Crowd:
    """A plane in memory, and who is a candidate in each of its passes."""

    document: dict[str, Any]
    world: Any = field(init=False)

    def __post_init__(self) -> None:
        self.world = plane({"teams": TEAMS} | self.document)

    def submit(self, *jobs: Job) -> None:
        store = MemoryJobStore(self.world.tables)
        for one in jobs:
            store.submit(one, BODY)

    def candidates(self) -> tuple[WaitingJob, ...]:
        policy = parse_policy(self.world.tables.policy.document)
        found = self.world.reader.snapshot(policy.pools[0], policy=policy, paused=False, now=self.world.now)
        waiting: tuple[WaitingJob, ...] = found.waiting
        return waiting

    def names(self) -> set[str]:
        return {entry.name for entry in self.candidates()}


TEAMS = [{"name": f"team-{number:02d}", "principals": [], "roles": "any"} for number in range(22)]
KINDS = ("ml.a.xlarge", "ml.b.xlarge", "ml.c.xlarge", "ml.d.xlarge")
FULL = {"pools": [{"name": "main", "capacity": dict.fromkeys(KINDS, 8)}]}


def honest(lanes: int) -> Iterator[Job]:
    """Of 20 teams, each with a lane for every width and type; two jobs of each lane."""
    shapes = [of(width, kind) for width in range(1, 6) for kind in KINDS]
    for number in range(2 * lanes):
        yield waits(
            f"waits-{number:04d}",
            team=f"team-{number % 20:02d}",
            vector=shapes[number // 20 % 20],
            after=number,
        )


def test_K2_the_first_in_turn_is_looked_at_in_every_pass_however_many_lanes_there_are() -> None:
    crowd = Crowd(FULL)
    crowd.submit(*honest(400))
    crowd.submit(waits("first", team="team-21", vector=of(8, KINDS[0]), after=-1))
    seen: set[str] = set()
    for minute in range(30):
        crowd.world.now = NOON + minutes(minute)
        names = crowd.names()
        assert {"first", *(f"waits-{number:04d}" for number in range(63))} <= names
        assert len({entry.team for entry in crowd.candidates()}) == 21
        seen |= {f"{entry.team} {lane(entry.shapes, entry.choice)}" for entry in crowd.candidates()}
    assert len(seen) == 401, "each lane has had its look"


def test_K2_lanes_that_fit_and_may_not_start_hide_nobody_who_may() -> None:
    """Their team owns and borrows nothing; what is free is too little for who is first."""
    quotas = {"team-00": {"nominal": {A: 0}, "borrowing_limit": {A: 0}}, "team-01": {"nominal": {A: 4}}}
    crowd = Crowd({"pools": [{"name": "main", "capacity": {A: 4}, "quotas": quotas}]})
    subnets = [Shape(vector=of(1), subnet=f"subnet-{number:04d}") for number in range(400)]
    crowd.submit(
        *(
            waits(f"may-not-{number}", team="team-00", shapes=(one,), after=number)
            for number, one in enumerate(subnets)
        ),
        waits("may", team="team-01", vector=of(4), after=10_000),
    )
    assert "may" in crowd.names()
    crowd.world.run_pass()
    assert crowd.world.job("may").is_live
    assert not any(one.is_live for one in crowd.world.tables.jobs.values() if one.name != "may")


@pytest.mark.thorough
def test_K3_a_thousand_shapes_hold_up_nobody() -> None:
    """Who fits starts, and who is urgent preempts, in the first pass."""
    crowd = Crowd({"pools": [{"name": "main", "capacity": {A: 4, KINDS[1]: 1}}]})
    shapes = [Shape(vector=of(3 + number % 2), subnet=f"subnet-{number:04d}") for number in range(1000)]
    crowd.submit(waits("fills", team="team-00", vector=of(4), after=-9))
    crowd.world.run_pass()
    crowd.submit(
        *(
            waits(f"red-{number:04d}", team="team-00", shapes=(shapes[number % 1000],), after=number)
            for number in range(5000)
        ),
        waits("fits", team="team-01", vector=of(1, KINDS[1]), after=9999),
        waits("urgent", team="team-01", vector=of(4), after=10**7, priority=1000),
    )
    crowd.world.run_pass()
    assert crowd.world.job("fits").is_live
    assert crowd.world.job("fills").state.value in {"preempting", "pending", "preempted"}


# ---- rows


@dataclass(slots=True)
class Shapes:
    """Team red submits and cancels one shape after the other."""

    world: World
    count: int = 0

    def waits(self) -> Job:
        self.count += 1
        one = waits(
            f"shape-{self.count}",
            team="red",
            shapes=(Shape(vector={Capacity(A): 2}, subnet=f"subnet-{self.count:017d}"),),
            after=self.count,
        )
        self.world.wiring.store.submit(one, BODY)
        return one

    def cancels(self, one: Job) -> None:
        reason = Reason(code=ReasonCode.STOPPED_BY_USER, message="stopped by ada")
        after = steps.cancelled(one, reason=reason, now=self.world.now)
        self.world.wiring.store.commit([Change(before=one, after=after)], at=self.world.now)


@pytest.mark.parametrize("shapes", [70, pytest.param(2200, marks=pytest.mark.thorough)])
def test_K4_shapes_that_were_cancelled_leave_nothing_behind(new_world: NewWorld, shapes: int) -> None:
    world = new_world(POLICY)
    red = Shapes(world)
    before = reads_of_a_pass(world)
    for _ in range(shapes):
        red.cancels(red.waits())
    assert max(item_bytes(item) for item in world.items()) < ROW_BOUND
    assert lanes_of(world) == shapes
    assert reads_of_a_pass(world) <= before + MAX_LANES + MAX_SHORT + 2
    for _ in range(shapes // MAX_LANES + MAX_KNOWN // MAX_LANES):
        world.now += minutes(1)
        world.wake()
    assert lanes_of(world) == 0
    assert reads_of_a_pass(world) == before
    assert world.submit("new", **tagged("red", 0, *TYPES[:5]))["status"] == 201


def reads_of_a_pass(world: World) -> int:
    return len(world.calls_of(lambda: snapshot(world)))


def lanes_of(world: World) -> int:
    return sum(item["pk"]["S"] == "L#main" for item in world.items())


def test_K4_a_lane_that_is_found_empty_stays_if_somebody_comes_in_meanwhile(new_world: NewWorld) -> None:
    world = new_world(POLICY)
    red = Shapes(world)
    red.cancels(red.waits())
    (empty,) = snapshot(world).empty_lanes
    red.count -= 1
    again = waits(
        "again", team="red", shapes=(Shape(vector={Capacity(A): 2}, subnet=f"subnet-{1:017d}"),), after=0
    )
    world.wiring.store.submit(again, BODY)
    world.wiring.store.drop_lanes("main", [empty])
    assert lanes_of(world) == 1
    red.cancels(again)
    world.wiring.store.drop_lanes("main", snapshot(world).empty_lanes)
    assert lanes_of(world) == 0


def test_K4_of_many_lanes_found_empty_at_once_only_the_one_that_somebody_came_into_stays(
    new_world: NewWorld,
) -> None:
    world = new_world(POLICY)
    red = Shapes(world)
    for _ in range(3):
        red.cancels(red.waits())
    empty = snapshot(world).empty_lanes
    assert len(empty) == 3
    second = Shape(vector={Capacity(A): 2}, subnet=f"subnet-{2:017d}")
    world.wiring.store.submit(waits("again", team="red", shapes=(second,), after=0), BODY)
    world.wiring.store.drop_lanes("main", empty)
    assert lanes_of(world) == 1
    assert [one.name for one in snapshot(world).waiting] == ["again"]
