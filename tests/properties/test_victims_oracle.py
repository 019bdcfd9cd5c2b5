"""The index of victims chooses whom the plain search over all running jobs would."""

import random
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from trainmaster.core.jobs.instances import Shape, Vector
from trainmaster.core.jobs.model import JobState
from trainmaster.core.planning.preemption import Preemptor
from trainmaster.core.planning.quotas import Quotas
from trainmaster.core.planning.snapshot import RunningJob
from trainmaster.core.planning.victims import Victims
from trainmaster.core.policy import Preemption, Quota

from tests.builders import NOON, B, minutes, of, running, waiting
from tests.properties.plain_victims import Field, victims_for
from tests.properties.pools import always

VECTORS: tuple[Vector, ...] = (of(1), of(1), of(2), of(3), of(7), of(1, B), of(4, B), {**of(2), **of(1, B)})
ASKED: tuple[Vector, ...] = (of(1), of(3), of(9), of(30), of(2, B), of(11, B), {**of(4), **of(3, B)})
TEAMS = ("red", "blue", "green")
KEYS = (None, None, "k", "l")


def runs(number: int, draw: random.Random) -> RunningJob:
    return running(
        f"r{number:03d}",
        vector=draw.choice(VECTORS),
        priority=draw.randrange(4),
        team=draw.choice(TEAMS),
        minutes_ago=draw.randrange(90),
        training_since=draw.choice([None, NOON - minutes(20), NOON - minutes(30), NOON - minutes(90)]),
        last_checkpoint=draw.choice([None, NOON - minutes(5), NOON - minutes(20)]),
        preemptible=draw.random() < 7 / 8,
        state=draw.choice([*[JobState.RUNNING] * 7, JobState.STARTING]),
        preemptions=draw.choice([0, 0, 0, 3]),
        cents_per_hour=draw.choice([None, 100, 300, 900]),
        warm_key=draw.choice(KEYS),
        ends_by=draw.choice([None, NOON + minutes(3), NOON + minutes(60)]),
    )


def preemptor(number: int, tiers: dict[str, int], draw: random.Random) -> Preemptor:
    name = f"w{number}"
    job = waiting(name, priority=draw.randrange(6), minutes_ago=draw.randrange(120), team=draw.choice(TEAMS))
    shape = Shape(vector=draw.choice(ASKED), warm_key=draw.choice(KEYS))
    return Preemptor(job=job, shape=shape, tier=tiers.get(name, 0))


@always
@given(seed=st.integers(0, 2**32))
def test_each_preemptor_of_a_plan_finds_those_whom_the_plain_search_finds(seed: int) -> None:
    draw = random.Random(seed)
    live = tuple(runs(number, draw) for number in range(draw.choice([3, 12, 60])))
    names = [*(one.name for one in live), *(f"w{number}" for number in range(8))]
    tiers = {name: draw.randrange(2) for name in names} if draw.random() < 2 / 3 else {}
    quotas = Quotas(quotas={"red": Quota()} if tiers else {}, tiers=tiers)
    rules = replace(
        Preemption(),
        min_priority_gap=draw.choice([1, 1, 2]),
        min_runtime=minutes(draw.choice([0, 25])),
        preempt_delay=minutes(draw.choice([0, 0, 10])),
        needs_checkpoint=draw.random() < 1 / 4,
    )
    index = Victims.of(live, quotas, rules=rules, now=NOON)
    for number in range(8):
        asks = preemptor(number, tiers, draw)
        own = draw.random() < 1 / 5
        free = {**of(draw.randrange(3)), **of(draw.randrange(3), B)}
        left = tuple(one for one in live if not own or one.team == asks.job.team)
        expected = victims_for(asks, Field(running=left, quotas=quotas, rules=rules, now=NOON), free=free)
        whom = index.of_team(asks.job.team) if own else index
        found = whom.chosen_for(asks, free=free).victims
        assert [one.name for one in found] == [one.name for one in expected]
        index.take(found)
        live = tuple(one for one in live if one not in found)
