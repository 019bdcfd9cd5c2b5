"""A preemption that dies after any of its victims: the next plan asks those still needed, and no more."""

import random

from hypothesis import given
from hypothesis import strategies as st
from trainmaster.core.jobs.instances import Capacity, Shape, total
from trainmaster.core.planning.actions import Preempt, Start
from trainmaster.core.planning.capacity import lacking
from trainmaster.core.planning.planner import plan
from trainmaster.core.planning.snapshot import Snapshot
from trainmaster.core.policy import PoolPolicy, Preemption

from tests.builders import NOON, snapshot, waiting
from tests.properties.carrying_out import after_stops, carry_out, preempted
from tests.properties.pools import always
from tests.properties.test_victims_oracle import ASKED, KEYS, runs


def crowded(draw: random.Random) -> tuple[Snapshot, PoolPolicy]:
    """Full of jobs of all sizes; two urgent ones want room."""
    live = [runs(number, draw) for number in range(draw.choice([6, 20, 60]))]
    urgent = [
        waiting(
            name, priority=9 - place, shapes=(Shape(vector=draw.choice(ASKED), warm_key=draw.choice(KEYS)),)
        )
        for place, name in enumerate(("first", "second"))
    ]
    used: dict[Capacity, int] = total(one.vector for one in live)
    pool = PoolPolicy(name="main", capacity={str(one): n for one, n in used.items()}, preemption=Preemption())
    return snapshot(*live, *urgent), pool


@always
@given(seed=st.integers(0, 2**32))
def test_who_is_asked_in_all_is_enough_and_nobody_is_asked_too_many(seed: int) -> None:
    draw = random.Random(seed)
    world, pool = crowded(draw)
    planned = [one for one in plan(world, pool, now=NOON).actions if isinstance(one, Preempt)]
    action = next(iter(planned), None)
    if action is None or lacking(action.short, total(one.vector for one in action.victims)):
        return  # either may count on what the other's victims leave over
    asked = draw.randint(1, len(action.victims))
    died = preempted(action, world, most=asked)
    (hold,) = died.holds
    decided = plan(died, pool, now=NOON).actions
    more = [one for one in decided if isinstance(one, Preempt) and one.job.name == action.job.name]
    if asked == len(action.victims):
        assert (more, hold.missing) == ([], None)
        return
    (rest,) = more
    victims = (*action.victims[:asked], *rest.victims)
    assert not lacking(action.short, total(one.vector for one in victims))
    for spared in rest.victims:
        others = total(one.vector for one in victims if one is not spared)
        assert lacking(action.short, others), f"{spared.name} was not needed"
    stopped = after_stops(carry_out(rest, died, now=NOON))
    started = [one.job.name for one in plan(stopped, pool, now=NOON).actions if isinstance(one, Start)]
    assert action.job.name in started
