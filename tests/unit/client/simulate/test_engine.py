"""Replays under any policy: who is refused, what ends jobs, what brings them back."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from trainmaster.core.policy import Policy, parse_policy
from trainmaster_client.simulate.engine.replays import PLAIN_QUEUE
from trainmaster_client.simulate.io.replaying import plain_queue, replay
from trainmaster_client.simulate.io.side_by_side import Column, side_by_side

from tests.unit.client.simulate.replayed import (
    BEGIN,
    G5,
    HIGH,
    LOW,
    attempts,
    history,
    instant,
    job,
    policy,
    replayed,
    times,
)

P5 = "ml.p5.48xlarge"
SPOT: Mapping[str, Any] = {"capacity_type": "spot", "saves": 100}


def two_types(**pool: Any) -> Policy:
    return policy({G5: 2, P5: 1}, spot_capacity={G5: 3}, **pool)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        pytest.param({"instances": {"ml.g6.xlarge": 1}}, "ml.g6.xlarge belongs to no pool", id="no pool"),
        pytest.param({"n": 3}, "asks for 3, but pool g1 has 2 on-demand ml.g5.xlarge in all", id="too many"),
        pytest.param(
            {"instances": {P5: 1}, "capacity_type": "spot"},
            "asks for 1, but pool g1 has 0 spot ml.p5.48xlarge in all",
            id="no spot of its type",
        ),
    ],
)
def test_a_job_that_the_policy_has_no_instances_for_is_refused(fields: dict[str, Any], reason: str) -> None:
    found = replay(history(job("a", **fields)), two_types(), label="mine")
    assert (found.policy, found.refused, found.attempts) == ("mine", {"a": reason}, [])


def test_a_type_that_drains_takes_nobody() -> None:
    found = replay(history(job("a")), policy(0), label="mine")
    assert found.refused == {"a": "asks for 1, but pool g1 has 0 on-demand ml.g5.xlarge in all"}


def test_rules_that_a_history_lets_judge_refuse_and_the_others_are_named() -> None:
    rules = {"max_runtime": "12h", "images": ["123456789012.dkr.ecr.us-east-1.amazonaws.com/a"]}
    found = replay(history(job("a")), policy(rest={"rules": rules}), label="mine")
    assert found.refused["a"].startswith("max_runtime: StoppingCondition.MaxRuntimeInSeconds is 86400")
    assert found.notes == ["Rules that need more of a request than the history has: rules.images."]


def test_audited_rules_refuse_nobody() -> None:
    rules = {"max_runtime": {"value": "12h", "mode": "audit"}}
    assert replay(history(job("a")), policy(rest={"rules": rules}), label="a").refused == {}


def test_priorities_above_the_ceiling_of_the_team_are_cut() -> None:
    teams: list[dict[str, Any]] = [{"name": "vision", "max_priority": 50}, {"name": "speech"}]
    jobs = (job("first"), job("a", at=10, priority=HIGH), job("b", at=20, team="speech", priority=60))
    found = replay(history(*jobs), policy(1, teams=teams, preemption={"enabled": False}), label="a")
    starts = {one.job: one.start_s for one in found.attempts}
    assert starts["b"] < starts["a"]
    assert found.notes[0] == "2 jobs had a priority above their team's ceiling, and run with the ceiling."


def test_types_of_a_pool_and_its_spot_instances_are_counted_apart() -> None:
    jobs = [job(f"g{n}") for n in range(3)] + [job(f"s{n}", **SPOT) for n in range(4)]
    found = replayed(*jobs, job("p", instances={P5: 1}), policy=two_types())
    starts = {name: one.start_s for (name, _), one in found.items()}
    assert [starts[name] for name in ("g0", "g1", "p", "s0", "s1", "s2")] == [0] * 6
    assert (starts["g2"], starts["s3"]) == (1240, 1240)
    assert {one.capacity_type for (name, _), one in found.items() if name[0] == "s"} == {"spot"}


def test_a_team_takes_its_quota_back_from_a_borrower() -> None:
    teams = [{"name": "vision"}, {"name": "speech"}]
    rules = policy(2, teams=teams, quotas={"vision": 1, "speech": 1})
    found = replayed(
        job("own", trains=9000), job("borrows", at=1, trains=9000), job("s", at=500, team="speech"),
        policy=rules,
    )  # fmt: skip
    assert times(found["borrows", 0]) == (1, 241, 590, "preempted")
    assert found["borrows", 0].preempted_by == "s"
    assert found["s", 0].start_s == 590


def test_a_borrowing_limit_holds_a_team_back_though_instances_are_free() -> None:
    quota = {"nominal": {G5: 1}, "borrowing_limit": {G5: 0}}
    found = replayed(
        job("a"), job("b", at=1), policy=policy(2, teams=[{"name": "vision"}], quotas={"vision": quota})
    )
    assert found["b", 0].start_s == 1240


def test_a_job_that_its_teams_month_does_not_cover_waits_for_the_next() -> None:
    # 1.408 USD an hour for a day: 33.80 USD at worst; of 40 USD one job is covered until it is billed.
    teams = [{"name": "vision", "budget": {"usd_per_month": 40}}]
    late = timedelta(days=30, hours=23) // timedelta(seconds=1)
    rules = policy(2, teams=teams)
    found = replayed(job("a", at=late), job("b", at=late + 1), policy=rules)
    assert found["a", 0].start_s == late
    assert found["b", 0].start_s == found["a", 0].end_s
    dear = [job(f"j{n}", at=late + n, trains=80_000) for n in range(2)]
    starts = {one.job: one.start_s for one in replayed(*dear, policy=rules).values()}
    assert instant(starts["j1"]).date().isoformat() == "2026-11-01"


def test_a_job_that_reaches_its_max_runtime_is_stopped() -> None:
    found = replayed(job("a", trains=9000, max_runtime=timedelta(seconds=3600)), policy=policy(1))
    assert times(found["a", 0]) == (0, 240, 3840, "stopped")


@pytest.mark.parametrize("end", ["failed", "stopped"])
def test_a_job_ends_as_it_did(end: str) -> None:
    found = replayed(job("a", end=end), policy=policy(1, rest={"recovery": {"min_runtime": "0s"}}))
    assert [times(one) for one in found.values()] == [(0, 240, 1240, end)]


def test_a_failure_that_the_policy_retries_comes_back_from_its_checkpoint_after_the_back_off() -> None:
    recovery = {"min_runtime": "0s", "backoff": {"first": "10m", "max": "10m"}}
    one = job("a", trains=1000, saves=200, breaks=[(500, "hardware")])
    found = replayed(one, policy=policy(1, rest={"recovery": recovery}))
    assert times(found["a", 0]) == (0, 240, 740, "failed")
    assert found["a", 0].lost_s == 100
    again = found["a", 1]
    assert 740 < again.start_s <= 740 + 600 + 60
    assert again.start_s % 60 == 0  # reconcile finds that it is over
    assert (again.train_s - again.start_s, again.end_s - again.train_s, again.end) == (300, 600, "completed")


def test_a_failure_that_the_policy_does_not_retry_is_the_end() -> None:
    one = job("a", saves=200, breaks=[(500, "hardware")])
    for recovery in ({"min_runtime": "2h"}, {"min_runtime": "0s", "retry_classes": ["network"]}):
        found = replayed(one, policy=policy(1, rest={"recovery": recovery}))
        assert [times(each) for each in found.values()] == [(0, 240, 740, "failed")]


def test_an_interrupted_spot_job_goes_on_in_the_same_attempt() -> None:
    one = job("a", trains=1000, breaks=[(450, "interrupted")], **SPOT)
    found = replayed(one, policy=two_types())
    # 600 s until it has other instances, 240 to start up, 60 to load its checkpoint, and 50 s again
    assert times(found["a", 0]) == (0, 240, 690 + 900 + 600, "completed")
    assert found["a", 0].lost_s == 50


def test_one_that_is_interrupted_too_often_comes_back_on_demand() -> None:
    one = job("a", trains=5000, breaks=[(300, "interrupted")] * 4, **SPOT)
    found = replayed(one, policy=two_types(rest={"spot": {"max_interruptions": 1, "min_progress_ratio": 0}}))
    first, second = found["a", 0], found["a", 1]
    assert (first.capacity_type, first.end) == ("spot", "interrupted")
    assert (second.capacity_type, second.end) == ("on-demand", "completed")


def test_interruptions_do_not_happen_on_demand() -> None:
    found = replayed(job("a", breaks=[(450, "interrupted")]), policy=policy(1))
    assert times(found["a", 0]) == (0, 240, 1240, "completed")


def test_a_job_withdrawn_while_it_waits_never_starts() -> None:
    found = replayed(
        job("first", trains=9000),
        job("a", at=10, trains=0, end="stopped", withdrawn_after=timedelta(seconds=500)),
        policy=policy(1),
    )
    assert set(found) == {("first", 0)}


def test_a_job_that_is_withdrawn_after_it_started_is_stopped_then() -> None:
    one = job("a", trains=0, end="stopped", withdrawn_after=timedelta(seconds=500))
    assert [times(each) for each in replayed(one, policy=policy(1)).values()] == [(0, 240, 590, "stopped")]


def test_what_is_live_at_the_end_of_the_replay_is_noted_as_such() -> None:
    found = replay(history(job("a")), policy(1), label="a", until=instant(700))
    assert [times(one) for one in found.attempts] == [(0, 240, 700, "live")]


def test_a_job_that_was_there_before_the_period_begins_is_where_it_was() -> None:
    early = replace(job("a"), submitted_at=BEGIN - timedelta(seconds=600))
    assert times(replayed(early, policy=policy(1))["a", 0]) == (-600, -360, 640, "completed")


def test_progress_rises_to_one() -> None:
    seen: list[float] = []
    replay(
        history(*(job(f"j{n}", at=100 * n) for n in range(600))), policy(30), label="a", progress=seen.append
    )
    assert seen == sorted(seen)
    assert (seen[0] > 0, seen[-1]) == (True, 1.0)


def test_the_same_history_gives_the_same_rows_beside_others() -> None:
    past = history(
        *(job(f"j{n:02d}", at=37 * n, trains=300 + 97 * n, priority=50 * (n % 4)) for n in range(40))
    )
    seen: list[float] = []
    columns = [Column(label=f"{count}", history=past, policy=policy(count)) for count in (2, 3)]
    plain = Column(label=PLAIN_QUEUE, history=past, policy=two_types(), is_plain=True)
    found = side_by_side([*columns, plain], progress=seen.append)
    assert [one.policy for one in found] == ["2", "3", PLAIN_QUEUE]
    alone = [*(replay(past, one.policy, label="") for one in columns), plain_queue(past, plain.policy)]
    assert [one.attempts for one in found] == [one.attempts for one in alone]
    assert seen[-1] == 1.0


@pytest.mark.thorough
def test_processes_change_nothing() -> None:
    past = history(
        *(job(f"j{n:03d}", at=37 * n, trains=300 + 7 * (n % 50), priority=LOW) for n in range(300))
    )
    columns = [
        Column(label="two", history=past, policy=policy(2)),
        Column(label="three", history=past, policy=two_types()),
        Column(label=PLAIN_QUEUE, history=past, policy=two_types(), is_plain=True),
    ]
    alone = side_by_side(columns, processes=1)
    beside = side_by_side(columns, processes=2)
    assert [one.attempts for one in beside] == [one.attempts for one in alone]


def test_capacities_are_those_of_the_policy() -> None:
    document = {"version": 1, "pools": [{"name": "a", "capacity": {G5: 2}, "spot_capacity": {P5: 1}}]}
    found = replay(history(), parse_policy(document), label="a")
    assert found.capacity == {"a": {"on-demand": {G5: 2}, "spot": {P5: 1}}}
    assert attempts(found) == {}
