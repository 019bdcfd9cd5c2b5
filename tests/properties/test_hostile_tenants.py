"""Tenants with every shape, priority, cancel, change and hold they like: nobody is hidden, no row grows."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from trainmaster.core.planning.snapshot import Snapshot
from trainmaster.core.policy import parse_policy
from trainmaster.services.deadline import Deadline

from local.engine.dynamodb.values import item_bytes
from tests.builders import A
from tests.faults.conftest import NewWorld
from tests.faults.scenes import ends
from tests.integration.world import World

ADA = "arn:aws:iam::123456789012:user/ada"
TYPES = tuple(f"ml.r{number:02d}n.24xlarge" for number in range(12))
HOSTILE = ("red", "green", "black")
HONEST = "blue"
POLICY: dict[str, Any] = {
    "pools": [{"name": "main", "capacity": {A: 2} | dict.fromkeys(TYPES, 1)}],
    "teams": [{"name": name, "principals": [ADA], "roles": "any"} for name in (*HOSTILE, HONEST)],
}
ROW_BOUND = 20_000
"""Bytes."""
UNSEEN_BOUND = timedelta(minutes=5)
NO_END = Deadline(lambda: timedelta(hours=1))
FIRST_OF_ORDER = 1_000


@dataclass(slots=True)
class Siege:
    world: World
    draw: Random
    each: int
    """What each hostile team does between two passes."""
    made: int = 0

    def round(self) -> None:
        for team in HOSTILE:
            for _ in range(self.each):
                self._attack(team)

    def _attack(self, team: str) -> None:
        name = f"{team}-{self.draw.randrange(self.made + 1)}"
        match self.draw.randrange(6):
            case 0:
                self.world.cancel(name)
            case 1:
                self.world.patch(name, priority=self.draw.randrange(500))
            case 2:
                self.world.patch(name, held=self.draw.random() < 0.5)
            case _:
                self.made += 1
                self.submit(f"{team}-{self.made}", team, priority=self.draw.randrange(500))

    def submit(self, name: str, team: str, *, priority: int, anywhere: bool = True) -> int:
        tags = {"team": team, "priority": str(priority)}
        if anywhere:
            shapes = self.draw.sample(TYPES, self.draw.randrange(2, len(TYPES)))
            tags["trainmaster:alternatives"] = " ".join(f"{one}=1" for one in shapes)
        listed = [{"Key": key, "Value": content} for key, content in tags.items()]
        status: int = self.world.submit(name, Tags=listed)["status"]
        return status

    # ---- what must hold

    def snapshot(self) -> Snapshot:
        policy = parse_policy(POLICY)
        reader = self.world.wiring.reader
        return reader.snapshot(policy.pools[0], policy=policy, paused=False, now=self.world.now)

    def hidden(self) -> Iterator[str]:
        """The first of the order, and of each team's, whom a pass would not look at."""
        seen = {one.name for one in self.snapshot().waiting}
        order = self.world.wiring.reader.waiting("main", after=None, limit=FIRST_OF_ORDER)
        heads: dict[str, str] = {}
        for one in order:
            heads.setdefault(one.team, one.name)
        firsts = [one.name for one in order[:1]]
        yield from (name for name in (*firsts, *heads.values()) if name not in seen)

    def large_rows(self) -> list[str]:
        items = self.world.items()
        return [f"{one['pk']} {one['sk']}" for one in items if item_bytes(one) > ROW_BOUND]

    def unseen_for(self) -> timedelta:
        repairs = self.world.wiring.reconciler.run(deadline=NO_END)
        assert repairs.first_unseen is not None, repairs.failures
        return repairs.first_unseen[0]


def holds_out(world: World, *, seed: int, rounds: int, each: int) -> None:
    siege = Siege(world, Random(seed), each)
    for number in range(rounds):
        siege.round()
        assert list(siege.hidden()) == [], f"seed {seed}, round {number}"
        honest = f"honest-{number}"
        assert siege.submit(honest, HONEST, priority=0, anywhere=False) == 201
        world.schedule()
        world.schedule()
        assert world.states(honest) == ["running"], f"seed {seed}, round {number}"
        assert world.cancel(honest) == 202
        ends(world, honest, "Stopped")
        world.now += timedelta(minutes=1)
        assert siege.unseen_for() < UNSEEN_BOUND, f"seed {seed}, round {number}"
        assert siege.large_rows() == [], f"seed {seed}, round {number}"


@pytest.mark.parametrize("seed", [1])
def test_nobody_is_hidden_and_no_row_grows(new_world: NewWorld, seed: int) -> None:
    holds_out(new_world(POLICY), seed=seed, rounds=2, each=20)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(2, 6))
def test_nobody_is_hidden_and_no_row_grows_for_long(new_world: NewWorld, seed: int) -> None:
    holds_out(new_world(POLICY), seed=seed, rounds=6, each=50)
