"""O8 and O9: what is refused starts in no state of the pool, what is accepted starts in an empty one."""

import random
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from trainmaster.core.costs.ledger import MonthAccount, budget_cents
from trainmaster.core.costs.prices import PriceTable
from trainmaster.core.jobs.instances import Capacity, CapacityType, Vector
from trainmaster.core.planning.actions import Preempt, Start
from trainmaster.core.planning.loans import Loans
from trainmaster.core.planning.planner import plan, starts_in_empty_pool
from trainmaster.core.planning.queue_entries import waiting_entry
from trainmaster.core.planning.snapshot import BudgetState, RunningJob, Snapshot, WaitingJob
from trainmaster.core.policy import AtLimit, Policy, PoolPolicy, parse_policy
from trainmaster.core.request.request import read_request
from trainmaster.core.submission.admission import Submission, judge, new_job

from tests.bodies import body, tag_list
from tests.builders import NOON, of, running
from tests.properties.pools import always

A, B = "ml.m5.large", "ml.m5.xlarge"
TEAMS = ("vision", "speech", "third")
STATES = 12
"""Of the pool, tried with each refused job."""


def drawn_policy(draw: random.Random) -> Policy:
    capacity = {A: draw.choice([0, 2, 4, 4]), B: draw.randrange(1, 4)}
    quotas: dict[str, Any] = {}
    if draw.random() < 0.7:
        first = draw.randint(0, capacity[A])
        limits = [None, {A: 0}, {A: 1, B: 0}, {B: 2}]
        quotas = {
            "vision": _without_none(nominal={A: first}, borrowing_limit=draw.choice(limits)),
            "speech": _without_none(nominal={A: capacity[A] - first, B: draw.randint(0, capacity[B])}),
        }
    pool = {
        "name": "main",
        "capacity": capacity,
        "spot_capacity": {A: draw.randrange(3)},
        "quotas": quotas,
        "preemption": {"needs_checkpoint": draw.random() < 0.3, "cost": {"enabled": False}},
    }
    # A budget could move a job off a type that is drained: refused all the same, as it was before budgets.
    at_limit = draw.choice(["wait", "spot"]) if all(capacity.values()) else "wait"
    budget = {"usd_per_month": draw.choice([1, 2, 3, 6, 100]), "at_limit": at_limit}
    teams = [
        {"name": name, "roles": "any"} | ({"budget": budget} if draw.random() < 0.5 else {}) for name in TEAMS
    ]
    prices = {A: 1} | draw.choice([{}, {B: 2}])
    return parse_policy({"pools": [pool], "teams": teams, "prices": prices})


def _without_none(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def drawn_request(draw: random.Random, policy: Policy) -> dict[str, Any]:
    tags = {"trainmaster:preemptible": "false"} if draw.random() < 0.4 else {}
    room = policy.pools[0].capacity
    # With a budget that moves jobs to spot, which of several shapes is moved depends on what is spent.
    is_fixed = all(team.budget is None or team.budget.at_limit is AtLimit.WAIT for team in policy.teams)
    if is_fixed and draw.random() < 0.4 and all(room.values()):  # each shape within the capacity
        shapes = {f"{name}={draw.randint(1, room[name])}" for name in draw.sample([A, B], draw.randint(1, 2))}
        tags["trainmaster:alternatives"] = " ".join(sorted(shapes))
    instance_type = draw.choice([A, B])
    count = draw.randint(1, max(room[instance_type], 1)) if draw.random() < 0.9 else 5
    seconds = draw.choice([600, 3600, 4 * 3600])
    stopping = {"MaxRuntimeInSeconds": seconds}
    is_spot = draw.random() < 0.2
    return body(
        Tags=tag_list(tags),
        ResourceConfig={
            "InstanceType": instance_type,
            "InstanceCount": count,
            "VolumeSizeInGB": 1,
        },
        StoppingCondition=stopping | ({"MaxWaitTimeInSeconds": seconds} if is_spot else {}),
        EnableManagedSpotTraining=is_spot,
        CheckpointConfig={"S3Uri": "s3://b/c"} if draw.random() < 0.5 else None,
    )


def submission(draw: random.Random, policy: Policy) -> Submission:
    request = drawn_request(draw, policy)
    return Submission(body=request, ask=read_request(request), team=draw.choice(TEAMS), submitted_by="me")


def entry_of(made: Submission, pool: PoolPolicy) -> WaitingJob:
    return waiting_entry(new_job(made, pool, entry_id="x", now=NOON))


def months(policy: Policy, draw: random.Random | None = None) -> dict[str, BudgetState]:
    """Of the teams that have a budget; with ``draw`` somewhere within the month.

    A month that moves jobs to spot stays new: one that is spent would turn a job that asks for on-demand
    instances into one of spot, outside of quotas. Nobody asked for that, so the job is refused all the same.
    """
    found = {}
    for team in policy.teams:
        if team.budget is not None:
            limit = budget_cents(team.budget.usd_per_month)
            account = MonthAccount()
            if draw is not None and team.budget.at_limit is AtLimit.WAIT:
                account = MonthAccount(
                    spent=draw.choice([0, 0, limit // 2]), reserved=draw.choice([0, limit // 4])
                )
            found[team.name] = BudgetState(
                month="2026-11",
                account=account,
                limit_cents=limit,
                at_limit=team.budget.at_limit,
            )
    return found


def drawn_state(draw: random.Random, policy: Policy, job: WaitingJob) -> Snapshot:
    """Some jobs run, all of them within the capacity, and the job waits."""
    pool = policy.pools[0]
    live: list[RunningJob] = []
    left = dict(pool.capacity)
    for number in range(draw.randrange(4)):
        name = draw.choice([A, B])
        if left[name]:
            count = draw.randint(1, left[name])
            left[name] -= count
            live.append(
                running(
                    f"r{number}",
                    team=draw.choice(TEAMS),
                    n=count,
                    vector=of(count, name),
                    priority=draw.randrange(2),
                    preemptible=draw.random() < 0.8,
                )
            )
    used: dict[Capacity, int] = {}
    for one in live:
        for capacity, count in one.vector.items():
            used[capacity] = used.get(capacity, 0) + count
    return Snapshot(
        waiting=(job,),
        running=tuple(live),
        used=used,
        budgets=months(policy, draw),
        prices=PriceTable(overrides=policy.prices),
    )


@always
@given(seed=st.integers(0, 2**32))
def test_O9_what_never_fits_starts_in_no_state_and_what_is_accepted_starts_in_an_empty_pool(
    seed: int,
) -> None:
    draw = random.Random(seed)
    policy = drawn_policy(draw)
    pool = policy.pools[0]
    made = submission(draw, policy)
    entry = entry_of(made, pool)
    fresh = Snapshot(budgets=months(policy), prices=PriceTable(overrides=policy.prices))
    violations = judge(made, policy).violations
    assert starts_in_empty_pool(entry, fresh, pool, now=NOON) is not bool(violations), (seed, violations)
    if not violations:
        return
    assert {one.rule for one in violations} == {"never-fits"}, (seed, violations)
    for _ in range(STATES):
        actions = plan(drawn_state(draw, policy, entry), pool, now=NOON).actions
        assert not any(isinstance(one, Start | Preempt) for one in actions), seed


@always
@given(seed=st.integers(0, 2**32))
def test_O8_what_cannot_be_stopped_never_has_more_than_its_teams_quota(seed: int) -> None:
    """Many jobs come one after the other; whenever one that cannot be stopped starts, the quota covers it."""
    draw = random.Random(seed)
    policy = drawn_policy(draw)
    pool = policy.pools[0]
    accepted = [made for _ in range(9) if not judge(made := submission(draw, policy), policy).violations]
    entries = [entry_of(made, pool) for made in accepted]
    queue = tuple(_named(entry, number, draw) for number, entry in enumerate(entries))
    state = drawn_state(draw, policy, queue[0]) if queue else Snapshot()
    found = plan(Snapshot(waiting=queue, running=state.running, used=state.used), pool, now=NOON)
    loans = Loans.of(pool)
    for live in state.running:
        loans.count(live, live.vector)
    for action in found.actions:
        if isinstance(action, Start):
            loans.count(action.job, action.shape.vector)
            if pool.quotas and loans.bind(action.job):
                _assert_within(loans, action.job, action.shape.vector, seed)


def _named(entry: WaitingJob, number: int, draw: random.Random) -> WaitingJob:
    return replace(entry, name=f"w{number}", priority=draw.randrange(3), score=draw.randrange(100))


def _assert_within(loans: Loans, job: WaitingJob, vector: Vector, seed: int) -> None:
    nominal = loans.quotas[job.team].nominal if job.team in loans.quotas else {}
    for capacity in vector:
        if capacity.capacity_type is CapacityType.ON_DEMAND:
            fixed = loans.fixed_of(job.team)[capacity]
            assert fixed <= nominal.get(capacity.instance_type, 0), (seed, job.name)
