"""Tenants with every shape, priority, cancel, change and hold they like: nobody is hidden, no row grows."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from trainmaster.core.jobs.instances import Shape
from trainmaster.core.jobs.model import epoch_ms
from trainmaster.core.planning.snapshot import Snapshot, WaitingJob
from trainmaster.core.policy import parse_policy
from trainmaster.services.deadline import Deadline

from local.engine.dynamodb.values import item_bytes
from tests.builders import A, job, of
from tests.faults.conftest import NewWorld
from tests.faults.scenes import ends
from tests.integration.messages import ACCOUNT, proxy_event, request
from tests.integration.world import World

TYPES = tuple(f"ml.r{number:02d}n.24xlarge" for number in range(12))
HOSTILE = ("red", "green", "black")
HONEST = "blue"
MOST_CHANGES = 3
"""Submissions and changes that a team may make in a minute; the honest team makes one."""
POLICY: dict[str, Any] = {
    "pools": [
        {
            "name": "main",
            "capacity": {A: 2} | dict.fromkeys(TYPES, 1),
            "limits": {"max_submissions_per_minute": MOST_CHANGES},
        }
    ],
    "teams": [
        {"name": name, "principals": [f"arn:aws:iam::{ACCOUNT}:user/{name}"], "roles": "any"}
        for name in (*HOSTILE, HONEST)
    ],
}
ROW_BOUND = 20_000
"""Bytes."""
UNSEEN_BOUND = timedelta(minutes=5)
NO_END = Deadline(lambda: timedelta(hours=1))
FIRST, HEADS = 64, 8
"""Of the order, and of each team's, whom every pass looks at."""
ORDER = 1_000
CROWD = 60
"""Jobs of each hostile team before the first attack, no two of one lane."""
PATIENT = 3
"""Jobs of the honest team behind them all."""
MOST_CALLS = {"/jobs": 10, "/jobs/patient-0": 30}
"""Of AWS for one answer, however many wait."""
TOO_MANY = 429


@dataclass(slots=True)
class Siege:
    world: World
    draw: Random
    each: int
    """What each hostile team does between two passes."""
    made: int = 0
    statuses: dict[str, Counter[int]] = field(default_factory=dict)
    """Of the answers to each team."""

    def begin(self) -> None:
        """Every instance but two of one type is taken, and a crowd waits for them before the honest team."""
        pool = parse_policy(POLICY).pools[0]
        score = epoch_ms(self.world.now)
        crowd = [(team, number) for team in HOSTILE for number in range(CROWD)]
        for team, number in (*crowd, *((HONEST, number) for number in range(PATIENT))):
            priority = 0 if team == HONEST else 100 * (3 - HOSTILE.index(team)) + self.draw.randrange(100)
            shapes = (Shape(vector=of(1, TYPES[0])),) if team == HONEST else self._lane()
            one = job(
                f"patient-{number}" if team == HONEST else f"{team}-crowd-{number}",
                entry_id=f"01{team}{number:04d}",
                team=team,
                shapes=shapes,
                priority=priority,
                score=score - pool.boost_ms(priority),
                ranked_by=pool.order_key,
            )
            self.world.wiring.store.submit(one, json.dumps(request(one.name)).encode())
        self.world.wake()

    def _lane(self) -> tuple[Shape, ...]:
        return tuple(Shape(vector=of(1, one)) for one in self._types())

    def _types(self) -> list[str]:
        return self.draw.sample(TYPES, self.draw.randrange(2, len(TYPES)))

    def round(self) -> None:
        for team in HOSTILE:
            for _ in range(self.each):
                self._attack(team)

    def _attack(self, team: str) -> None:
        known = self.draw.choice((f"{team}-crowd-{self.draw.randrange(CROWD)}", f"{team}-{self.made}"))
        match self.draw.randrange(6):
            case 0:
                self.ask(team, "DELETE", f"/jobs/{known}")
            case 1:
                self.ask(team, "PATCH", f"/jobs/{known}", {"priority": self.draw.randrange(500)})
            case 2:
                self.ask(team, "PATCH", f"/jobs/{known}", {"held": self.draw.random() < 0.5})
            case _:
                self.made += 1
                alternatives = " ".join(f"{one}=1" for one in self._types())
                tags = {"trainmaster:alternatives": alternatives, "priority": str(self.draw.randrange(500))}
                self.submit(f"{team}-{self.made}", team, tags)

    def submit(self, name: str, team: str, tags: dict[str, str]) -> int:
        listed = [{"Key": key, "Value": content} for key, content in tags.items()]
        return self.ask(team, "POST", "/add-job", request(name, Tags=listed))

    def ask(self, team: str, method: str, path: str, body: Any = None) -> int:
        """The status of the answer."""
        event = proxy_event(method, path, body, user=f"arn:aws:iam::{ACCOUNT}:user/{team}")
        status: int = self.world.call("api", event)["statusCode"]
        self.statuses.setdefault(team, Counter())[status] += 1
        return status

    # ---- what must hold

    def snapshot(self) -> Snapshot:
        policy = parse_policy(POLICY)
        reader = self.world.wiring.reader
        return reader.snapshot(policy.pools[0], policy=policy, paused=False, now=self.world.now)

    def hidden(self) -> list[str]:
        """The first of the order, and of each team's, whom a pass would not look at."""
        seen = {one.name for one in self.snapshot().waiting}
        order = self.world.wiring.reader.waiting("main", after=None, limit=ORDER)
        return [one.name for one in _firsts(order) if one.name not in seen]

    def large_rows(self) -> list[str]:
        items = self.world.items()
        return [f"{one['pk']} {one['sk']}" for one in items if item_bytes(one) > ROW_BOUND]

    def unseen_for(self) -> timedelta:
        repairs = self.world.wiring.reconciler.run(deadline=NO_END)
        assert repairs.fronts.longest_unseen is not None, repairs.failures
        return repairs.fronts.longest_unseen[0]

    def dear_answers(self) -> dict[str, int]:
        """Paths whose answers take more calls than they may, and how many."""
        spent = {path: len(self.world.calls_of(lambda: self._read(path))) for path in MOST_CALLS}  # noqa: B023
        return {path: calls for path, calls in spent.items() if calls > MOST_CALLS[path]}

    def _read(self, path: str) -> None:
        assert self.ask(HONEST, "GET", path) == 200


def _firsts(order: tuple[WaitingJob, ...]) -> Iterator[WaitingJob]:
    of_teams: Counter[str] = Counter()
    for number, one in enumerate(order):
        of_teams[one.team] += 1
        if number < FIRST or of_teams[one.team] <= HEADS:
            yield one


def besieged(world: World, *, seed: int, each: int) -> Siege:
    siege = Siege(world, Random(seed), each)
    siege.begin()
    return siege


def holds_out(world: World, *, seed: int, rounds: int, each: int) -> None:
    siege = besieged(world, seed=seed, each=each)
    for number in range(rounds):
        siege.round()
        where = f"seed {seed}, round {number}"
        assert siege.hidden() == [], where
        assert siege.dear_answers() == {}, where
        honest = f"honest-{number}"
        assert siege.submit(honest, HONEST, {}) == 201, where
        world.schedule()
        assert world.states(honest) == ["running"], where
        assert siege.ask(HONEST, "DELETE", f"/jobs/{honest}") == 202, where
        ends(world, honest, "Stopped")
        world.now += timedelta(minutes=1)
        assert siege.unseen_for() < UNSEEN_BOUND, where
        assert siege.large_rows() == [], where
    assert siege.statuses[HONEST][TOO_MANY] == 0
    assert any(siege.statuses[team][TOO_MANY] for team in HOSTILE), "an attack that no limit meets"


@pytest.mark.parametrize("seed", [1])
def test_nobody_is_hidden_and_no_row_grows(new_world: NewWorld, seed: int) -> None:
    holds_out(new_world(POLICY), seed=seed, rounds=1, each=7)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(2, 6))
def test_nobody_is_hidden_and_no_row_grows_for_long(new_world: NewWorld, seed: int) -> None:
    holds_out(new_world(POLICY), seed=seed, rounds=6, each=30)
