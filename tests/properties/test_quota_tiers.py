"""Who borrows is who the plain count in turn says, whatever teams share a pool."""

import random
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from trainmaster.core.jobs.instances import Capacity, Vector
from trainmaster.core.planning.quotas import BORROWER, COVERED, Quotas
from trainmaster.core.planning.snapshot import RunningJob, WaitingJob
from trainmaster.core.policy import PoolPolicy, Quota

from tests.builders import A, B, of, pool, running, waiting
from tests.properties.pools import always

VECTORS: tuple[Vector, ...] = (
    of(1),
    of(1),
    of(3),
    of(2, B),
    {**of(1), **of(1, B)},
    {**of(2, B), **of(1)},
    of(2, spot=True),
)
TEAMS = ("red", "blue", "green")


def counted_in_turn(
    shared: PoolPolicy, jobs: list[RunningJob | WaitingJob]
) -> tuple[dict[str, int], dict[str, dict[Capacity, int]]]:
    """One job after the other, each team from the beginning: slow, and plain to read."""
    tiers: dict[str, int] = {}
    used: dict[str, dict[Capacity, int]] = {}
    left = {
        team: {Capacity(name): n for name, n in one.nominal.items()} for team, one in shared.quotas.items()
    }
    for job in sorted(jobs, key=lambda one: (one.score, one.name)):
        rest = left.setdefault(job.team, {})
        asked = {one: n for one, n in job.vector.items() if not one.is_spot}
        covered = all(rest.get(one, 0) >= n for one, n in asked.items())
        tiers[job.name] = COVERED if covered else BORROWER
        for one, n in asked.items():
            if covered:
                rest[one] -= n
            if isinstance(job, RunningJob):
                of_team = used.setdefault(job.team, {})
                of_team[one] = of_team.get(one, 0) + n
    return tiers, used


@always
@given(seed=st.integers(0, 2**32))
def test_who_borrows_is_who_the_count_in_turn_says(seed: int) -> None:
    draw = random.Random(seed)
    fields: list[dict[str, Any]] = [
        {
            "vector": draw.choice(VECTORS),
            "team": draw.choice(TEAMS),
            "priority": draw.randrange(3),
            "minutes_ago": draw.randrange(5),
        }
        for _ in range(draw.choice([1, 6, 40]))
    ]
    live = [running(f"r{draw.randrange(10**6)}-{n}", **one) for n, one in enumerate(fields)]
    queue = [waiting(f"w{draw.randrange(10**6)}-{n}", **one) for n, one in enumerate(fields[:8])]
    quotas = {
        team: Quota(
            nominal={one: draw.randrange(draw.choice([2, 9, 99])) for one in draw.choice([(A,), (A, B)])}
        )
        for team in TEAMS[: draw.choice([1, 2, 3])]
    }
    shared = replace(pool(99), quotas=quotas)
    tiers, used = counted_in_turn(shared, [*live, *queue])
    found = Quotas.of(shared, live, queue)
    assert {name: found.tier(name) for name in tiers} == tiers, seed
    assert {team: counts for team, counts in found.used.items() if counts} == used, seed
