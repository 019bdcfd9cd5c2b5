"""Fair share: who is looked at, who is stopped, who waits how long, whatever has been used."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from trainmaster.core.planning.actions import Preempt
from trainmaster.core.planning.fair_share import MOST, ranked
from trainmaster.core.planning.past_use import HALF_LIFE, UsePeriod, UseSums
from trainmaster.core.planning.planner import plan
from trainmaster.core.policy import FairShare, PoolPolicy, parse_policy

from tests.builders import NOON, A, job, pool, running, snapshot, waiting
from tests.memory.reader import MemoryReader
from tests.memory.store import MemoryJobStore
from tests.memory.tables import Tables
from tests.properties.pools import Case, always, cases

TEAMS = ("atlas", "speech", "vision")
DAY = timedelta(days=1)


def used(hours: float) -> UseSums:
    period = UsePeriod.at(NOON, HALF_LIFE)
    return {period: round(hours * 3_600_000 * 2 ** ((NOON - period.begin) / HALF_LIFE))}


pasts = st.dictionaries(st.sampled_from(TEAMS), st.floats(0, 1e5).map(used))
shares = st.dictionaries(st.sampled_from(TEAMS), st.floats(0.001, 1000))
weights = st.integers(1, 1000)


def by_share(policy: PoolPolicy, weight: int, parts: dict[str, float] | None = None) -> PoolPolicy:
    return replace(
        policy, order=replace(policy.order, fair_share=FairShare(weight=weight, shares=parts or {}))
    )


def teams_of(case: Case, chance: Any) -> Case:
    """The same with teams; the others' teams are of quotas."""
    world = case.snapshot
    names = [*(one.name for one in world.waiting), *(one.name for one in world.running)]
    dealt = {name: chance.choice(TEAMS) for name in names}
    return replace(
        case,
        snapshot=replace(
            world,
            waiting=tuple(replace(one, team=dealt[one.name]) for one in world.waiting),
            running=tuple(replace(one, team=dealt[one.name]) for one in world.running),
        ),
    )


@always
@given(cases(), pasts, shares)
def test_with_weight_0_a_plan_is_bit_for_bit_the_same(
    case: Case, past: dict[str, UseSums], parts: dict[str, float]
) -> None:
    noted = replace(case.snapshot, past_use=past)
    assert plan(noted, by_share(case.pool, 0, parts), now=NOON) == plan(case.snapshot, case.pool, now=NOON)


@always
@given(cases(plain=True), pasts, shares, weights, st.randoms())
def test_who_preempts_has_more_priority_than_its_victims_so_no_two_stop_each_other_in_turns(
    case: Case, past: dict[str, UseSums], parts: dict[str, float], weight: int, chance: Any
) -> None:
    case = teams_of(case, chance)
    policy = by_share(replace(case.pool, quotas={}), weight, parts)
    world = replace(case.snapshot, past_use=past)
    found = ranked(world, policy, now=NOON)
    order = {one.name: one.rank for one in found.waiting} | {one.name: one.rank for one in found.running}
    for action in plan(world, policy, now=NOON).actions:
        if isinstance(action, Preempt):
            for one in action.victims:
                assert action.job.priority >= one.priority + policy.preemption.min_priority_gap
                assert order[action.job.name] < order[one.name]


@always
@given(cases(plain=True), pasts, shares, weights, st.randoms())
def test_no_two_jobs_have_one_rank_and_within_a_team_the_order_stays(
    case: Case, past: dict[str, UseSums], parts: dict[str, float], weight: int, chance: Any
) -> None:
    world = replace(teams_of(case, chance).snapshot, past_use=past)
    found = ranked(world, by_share(case.pool, weight, parts), now=NOON)
    assert len({one.rank for one in found.waiting}) == len(found.waiting)
    for team in TEAMS:
        own = [one for one in found.waiting if one.team == team]
        by_rank = sorted(own, key=lambda one: one.rank)
        assert by_rank == sorted(own, key=lambda one: (one.score, one.name))


@always
@given(pasts, shares, weights, st.integers(1, 10))
def test_age_passes_any_use_so_no_team_waits_for_ever(
    past: dict[str, UseSums], parts: dict[str, float], weight: int, more: int
) -> None:
    """Up to three times the weight is lost, and as much gained: so many days of age outweigh both."""
    enough = 2 * MOST * weight * DAY + timedelta(minutes=more)
    old = waiting("old", team="atlas", minutes_ago=enough / timedelta(minutes=1))
    others = [waiting(f"new-{team}", team=team) for team in TEAMS]
    live = [running("live", team="atlas", n=2)]
    found = ranked(snapshot(old, *others, *live, past_use=past), by_share(pool(), weight, parts), now=NOON)
    assert min(found.waiting, key=lambda one: one.rank).name == "old"


def stored(entries: list[tuple[str, int, int]]) -> MemoryReader:
    """A queue of (team, score, shape) on the table in memory."""
    tables = Tables()
    store = MemoryJobStore(tables)
    for number, (team, score, count) in enumerate(entries):
        name = f"{team}-{number:03d}"
        one = job(name, team=team, score=score, entry_id=f"01{name}", vector={A_CAPACITY: count})
        store.submit(one, json.dumps({"TrainingJobName": name}).encode())
    return MemoryReader(tables)


A_CAPACITY = next(iter(waiting("a").vector))


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([f"team-{n}" for n in range(6)]), st.integers(0, 10**10), st.integers(1, 3)
        ),
        min_size=100,
        max_size=160,
    ),
    st.dictionaries(st.sampled_from([f"team-{n}" for n in range(6)]), st.floats(0, 1000).map(used)),
    st.integers(1, 100),
)
def test_the_first_of_the_resulting_order_is_looked_at_in_every_pass(
    entries: list[tuple[str, int, int]], past: dict[str, UseSums], weight: int
) -> None:
    """However many jobs of others are ahead of it by score."""
    reader = stored(entries)
    document = {"pools": [{"name": "main", "capacity": {A: 4}, "order": {"fair_share": {"weight": weight}}}]}
    policy = parse_policy(document)
    read = replace(reader.snapshot(policy.pools[0], policy=policy, paused=False, now=NOON), past_use=past)
    whole = reader.waiting("main", after=None, limit=1000)
    assume(len(read.waiting) < len(whole))
    everybody = ranked(replace(read, waiting=whole), policy.pools[0], now=NOON)
    seen = ranked(read, policy.pools[0], now=NOON)
    first = min(everybody.waiting, key=lambda one: one.rank)
    assert min(seen.waiting, key=lambda one: one.rank) == first
