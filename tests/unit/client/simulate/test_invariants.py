"""What holds of every replay of whatever history and policy: random ones, each seed in its test's name."""

import random
from collections import defaultdict
from datetime import timedelta
from itertools import pairwise
from typing import Any, Literal

import pytest
from trainmaster.core.planning import planner
from trainmaster.core.planning.actions import Plan, Preempt, Start
from trainmaster.core.planning.capacity import pool_vector
from trainmaster.core.planning.snapshot import Snapshot
from trainmaster.core.policy import Policy, PoolPolicy, parse_policy
from trainmaster_client.simulate.engine.past_jobs import Break, History, PastJob
from trainmaster_client.simulate.engine.replays import Replay
from trainmaster_client.simulate.io.replaying import plain_queue, replay

from tests.unit.client.simulate.replayed import BEGIN

TYPES = ("ml.g5.xlarge", "ml.g5.12xlarge", "ml.p5.48xlarge")
TEAMS = ("vision", "speech", "nlp")
CODES = ("hardware", "network", "user-code", "interrupted")
FEW, MANY = range(2), range(2, 40)


def drawn_policy(chance: random.Random) -> Policy:
    capacity = {one: chance.randint(1, 6) for one in TYPES}
    nominal = {one: count // len(TEAMS) for one, count in capacity.items()}
    quotas = {team: {"nominal": nominal, "borrowing_limit": {TYPES[0]: 1}} for team in TEAMS}
    first: dict[str, Any] = {
        "name": "first",
        "capacity": {one: capacity[one] for one in TYPES[:2]},
        "spot_capacity": {TYPES[0]: chance.randint(0, 4)},
        "order": {"backfill": chance.random() < 0.7, "shortest_first": chance.random() < 0.3},
        "preemption": {"max_per_job": chance.randint(0, 4), "min_runtime": chance.choice(["0s", "10m"])},
        "warm_pool": {"keep_alive": chance.choice(["0s", "10m"]), "retain": "0s"},
    }
    if chance.random() < 0.5:
        first["quotas"] = {
            team: {
                key: {one: n for one, n in counts.items() if one in TYPES[:2]} for key, counts in q.items()
            }
            for team, q in quotas.items()
        }
    teams: list[dict[str, Any]] = [{"name": team} for team in TEAMS]
    if chance.random() < 0.3:
        teams[0]["budget"] = {"usd_per_month": chance.choice([50, 2000])}
    return parse_policy(
        {
            "version": 1,
            "pools": [first, {"name": "second", "capacity": {TYPES[2]: capacity[TYPES[2]]}}],
            "teams": teams,
            "recovery": {"min_runtime": chance.choice(["0s", "2h"])},
            "spot": {"max_interruptions": chance.randint(0, 2)},
        }
    )


def drawn_job(chance: random.Random, number: int) -> PastJob:
    ends: tuple[Literal["completed", "failed", "stopped"], ...] = (
        "completed",
        "completed",
        "failed",
        "stopped",
    )
    trains = chance.choice([0, chance.randint(1, 600), chance.randint(600, 20_000)])
    breaks = tuple(
        Break(after=timedelta(seconds=chance.randint(0, 5000)), code=chance.choice(CODES))
        for _ in range(chance.choice([0, 0, 0, 1, 3]))
    )
    return PastJob(
        name=f"j{number:03d}",
        team=chance.choice(TEAMS),
        submitted_by="ann",
        submitted_at=BEGIN
        + timedelta(seconds=chance.randint(-600, 40_000), milliseconds=chance.randint(0, 999)),
        pool=None,
        instances={chance.choice(TYPES): chance.randint(1, 3)},
        capacity_type="spot" if chance.random() < 0.2 else "on-demand",
        priority=chance.choice([0, 100, 200, 500]),
        max_runtime=timedelta(seconds=chance.choice([3600, 86_400])),
        trains_for=timedelta(seconds=trains),
        end=chance.choice(ends),
        saves_every=chance.choice([None, timedelta(seconds=300), timedelta(seconds=1800)]),
        breaks=breaks,
        preemptible=chance.random() < 0.9,
        withdrawn_after=timedelta(seconds=chance.randint(0, 9000)) if chance.random() < 0.1 else None,
    )


def drawn(seed: int) -> tuple[History, Policy]:
    chance = random.Random(seed)
    jobs = (drawn_job(chance, number) for number in range(40))
    return History(
        source="drawn", begins=BEGIN, jobs=tuple(sorted(jobs, key=lambda one: one.submitted_at))
    ), drawn_policy(chance)


SEEDS = (*FEW, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in MANY))


def most_in_use(found: Replay) -> dict[tuple[str, str, str], int]:
    """At one instant, attempts and warm pools together, by pool, type and capacity type."""
    steps: dict[tuple[str, str, str], list[tuple[int, int]]] = defaultdict(list)
    for one in found.attempts:
        held = steps[one.pool, one.instance_type, one.capacity_type]
        held += [(one.start_s, one.instances), (one.end_s, -one.instances)]
    for idle in found.warm:
        kept = steps[idle.pool, idle.instance_type, "on-demand"]
        kept += [(idle.since_s, idle.instances), (idle.until_s, -idle.instances)]
    most: dict[tuple[str, str, str], int] = {}
    for key, changes in steps.items():
        count = 0
        for _, change in sorted(changes):  # at one instant what ends goes first
            count += change
            most[key] = max(most.get(key, 0), count)
    return most


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_ever_above_capacity_and_no_job_runs_twice_at_once(seed: int) -> None:
    past, policy = drawn(seed)
    for found in (replay(past, policy, label="a"), plain_queue(past, policy)):
        for (pool, instance_type, capacity_type), count in most_in_use(found).items():
            assert count <= found.capacity[pool][capacity_type].get(instance_type, 0)
        by_job: dict[str, list[Any]] = defaultdict(list)
        for one in found.attempts:
            assert one.start_s <= one.train_s <= one.end_s
            assert one.lost_s >= 0
            by_job[one.job].append(one)
        submitted = {job.name: (job.submitted_at - BEGIN).total_seconds() for job in past.jobs}
        for name, rows in by_job.items():
            rows.sort(key=lambda row: row.attempt)
            assert [row.attempt for row in rows] == list(range(len(rows)))
            assert rows[0].start_s >= int(submitted[name])  # rows are in whole seconds
            assert all(row.end_s <= later.start_s for row, later in pairwise(rows))
            assert all(row.end in {"failed", "preempted", "interrupted"} for row in rows[:-1])
        assert by_job.keys().isdisjoint(found.refused)


@pytest.mark.parametrize("seed", SEEDS)
def test_each_start_fits_and_whoever_is_stopped_may_be_and_makes_enough_room(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen at the plans of the replay: what the snapshot says, never what the replay believes."""
    past, policy = drawn(seed)
    decide, starts, stops = planner.plan, 0, 0

    def checked(snapshot: Snapshot, pool: PoolPolicy, *, now: Any) -> Plan:
        nonlocal starts, stops
        plan = decide(snapshot, pool, now=now)
        there = pool_vector(pool)
        for capacity, count in snapshot.used.items():
            assert 0 <= count + snapshot.warm.get(capacity, 0) <= there[capacity]
        running = {one.name: one for one in snapshot.running}
        for action in plan.actions:
            if isinstance(action, Start):
                starts += 1
                assert action.job.name not in running
            if isinstance(action, Preempt):
                for victim in action.victims:
                    stops += 1
                    assert victim == running[victim.name]
                    assert victim.preemptible
                    is_reclaimed = victim.name in action.reclaimed  # what was lent can be called back
                    assert is_reclaimed or victim.preemptions < pool.preemption.max_per_job
        return plan

    monkeypatch.setattr(planner, "plan", checked)
    replay(past, policy, label="a")
    assert starts > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_a_replay_comes_to_the_same_each_time(seed: int) -> None:
    past, policy = drawn(seed)
    first, second = (replay(past, policy, label="a") for _ in range(2))
    assert (first.attempts, first.warm, first.refused) == (second.attempts, second.warm, second.refused)
    assert first.passes == second.passes
