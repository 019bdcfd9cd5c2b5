"""Whose jobs are covered by their own quota, who borrows, and how much."""

from dataclasses import replace
from typing import Any

import pytest
from trainmaster.core.jobs.instances import Capacity
from trainmaster.core.jobs.model import JobState
from trainmaster.core.planning.planner import plan
from trainmaster.core.planning.quotas import BORROWER, COVERED, Quotas
from trainmaster.core.planning.refusal_records import AccountLimit
from trainmaster.core.planning.snapshot import PreemptionReservation, RunningJob, WaitingJob
from trainmaster.core.policy import Quota

from tests.builders import NOON, A, B, minutes, of, pool, running, snapshot, waiting
from tests.unit.core.planning.plans import decided, quota, shape, shared, starts, told


def tiers(*jobs: RunningJob | WaitingJob, **quotas: Quota) -> dict[str, int]:
    live = [job for job in jobs if isinstance(job, RunningJob)]
    queue = [job for job in jobs if isinstance(job, WaitingJob)]
    found = Quotas.of(shared(9, quotas), live, queue)
    return {job.name: found.tier(job.name) for job in jobs}


def ours(name: str, minutes_ago: float, **fields: Any) -> WaitingJob:
    return waiting(name, team="vision", minutes_ago=minutes_ago, **fields)


@pytest.mark.parametrize(
    ("jobs", "borrowers"),
    [
        pytest.param((ours("a", 2), ours("b", 1)), {"b"}, id="filled in the order of their turn"),
        pytest.param(
            (ours("a", 2), running("b", team="vision", minutes_ago=9)), {"a"}, id="live and waiting together"
        ),
        pytest.param(
            (ours("a", 2, priority=1), running("b", team="vision", minutes_ago=9)),
            {"b"},
            id="a waiting job that ranks before one that runs is the covered one",
        ),
        pytest.param(
            (ours("a", 2, n=2), ours("b", 1)), {"a"}, id="what is too wide leaves the rest to the next"
        ),
        pytest.param(
            (ours("a", 2, vector=of(9, A, spot=True)), ours("b", 1)), set(), id="spot runs outside of quotas"
        ),
        pytest.param(
            (ours("a", 2, vector=of(1, B)), ours("b", 1)), {"a"}, id="a type that is not named: nothing"
        ),
        pytest.param((waiting("x", team="other"),), {"x"}, id="a team that is not named: nothing"),
        pytest.param(
            (ours("a", 2, vector={**of(1), **of(1, B)}), ours("b", 1)),
            {"a"},
            id="a job of several types is covered as a whole or not at all",
        ),
    ],
)
def test_tiers(jobs: tuple[RunningJob | WaitingJob, ...], borrowers: set[str]) -> None:
    for order in (jobs, jobs[::-1]):
        found = tiers(*order, vision=quota(1))
        assert found == {job.name: BORROWER if job.name in borrowers else COVERED for job in jobs}


def test_without_quotas_everybody_is_covered() -> None:
    assert tiers(waiting("a"), running("b", team="other")) == {"a": COVERED, "b": COVERED}


def test_those_within_their_quota_go_first_whatever_the_priority_of_borrowers() -> None:
    world = snapshot(
        waiting("rich", team="other", priority=999),
        waiting("own", team="vision", minutes_ago=2),
        waiting("more", team="vision", minutes_ago=1),
    )
    rules = shared(3, {"vision": quota(1)})
    assert decided(world, rules) == [("start", "own"), ("start", "rich"), ("start", "more")]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        pytest.param(None, ["a", "b", "c"], id="no limit: whatever others leave idle"),
        pytest.param(2, ["a", "b", "c"], id="two beyond its own"),
        pytest.param(1, ["a", "b"], id="one beyond its own"),
        pytest.param(0, ["a"], id="none beyond its own"),
    ],
)
def test_how_much_a_team_may_borrow(limit: int | None, expected: list[str]) -> None:
    world = snapshot(ours("a", 3), ours("b", 2), ours("c", 1))
    assert list(starts(world, shared(9, {"vision": quota(1, limit)}))) == expected


def test_what_runs_counts_against_the_borrowing_limit_and_the_reason_says_so() -> None:
    live = [running(name, team="vision", minutes_ago=9) for name in ("r", "s")]
    world = snapshot(*live, ours("a", 1), waiting("x", team="other"))
    rules = shared(9, {"vision": quota(1, 1)})
    assert decided(world, rules) == [("start", "x")]
    assert told(world, rules, "a") == (
        "quota",
        (
            "needs ml.a.xlarge=1; team vision uses 2 of its quota of 1 and may borrow 1;"
            " it starts when jobs of the team end"
        ),
    )


def test_a_team_without_anything_of_its_own_may_borrow_just_its_limit() -> None:
    world = snapshot(ours("a", 3), ours("b", 2))
    assert list(starts(world, shared(9, {"vision": quota(0, 1)}))) == ["a"]
    assert told(world, shared(9, {"vision": quota(0, 0)}), "a") == (
        "quota",
        "needs ml.a.xlarge=1; team vision uses 0 of its quota of 0 and may borrow 0",
    )


def test_a_team_at_its_borrowing_limit_makes_room_among_its_own_jobs() -> None:
    live = [running(name, team="vision", minutes_ago=ago) for name, ago in (("r", 9), ("s", 8))]
    world = snapshot(*live, running("low", team="other"), ours("a", 0, priority=5))
    rules = shared(4, {"vision": quota(1, 1)})
    assert decided(world, rules) == [("preempt for", "a", "s")]
    asked = replace(live[1], state=JobState.PREEMPTING, stop_sent=True)
    hold = PreemptionReservation(preemptor="a", vector=of(1), victims=("s",))
    meanwhile = plan(snapshot(live[0], asked, ours("a", 0, priority=5), holds=(hold,)), rules, now=NOON)
    assert meanwhile.actions == ()
    assert meanwhile.reasons["a"].message == f"s is stopping to make room for {A}=1"


def test_a_team_at_its_borrowing_limit_stops_nobody_for_a_shape_that_it_may_not_have_anyway() -> None:
    free_to_stop = running("s", team="vision", vector=of(1, B))
    wants = ours("a", 0, priority=5, shapes=(shape(1), shape(1, B)))
    kept = running("r", team="vision", minutes_ago=9, preemptible=False)
    refused = AccountLimit(limit=1, until=NOON + minutes(5), refusals=1)
    rules = replace(pool(4, b=4), quotas={"vision": Quota(nominal={}, borrowing_limit={A: 1, B: 1})})
    world = snapshot(kept, free_to_stop, wants, account_limits={Capacity(B): refused})
    assert plan(world, rules, now=NOON).actions == ()


def test_a_team_at_its_borrowing_limit_waits_where_it_may_not_stop_its_own() -> None:
    live = [running(name, team="vision", minutes_ago=9, priority=9) for name in ("r", "s")]
    world = snapshot(*live, running("low", team="other"), ours("a", 0, priority=5))
    found = plan(world, shared(4, {"vision": quota(1, 1)}), now=NOON)
    assert (found.actions, found.reasons["a"].code) == ((), "quota")


def test_a_job_that_may_not_borrow_gets_no_reservation_and_stops_nobody_else() -> None:
    world = snapshot(
        running("low", team="other"),
        running("r", team="vision", minutes_ago=9, n=2, priority=99),
        ours("wide", 5, n=2, priority=99),
        waiting("x", team="other"),
    )
    assert decided(world, shared(4, {"vision": quota(1, 1)})) == [("start", "x")]


def test_a_limit_on_one_type_does_not_bind_another() -> None:
    limit = Quota(nominal={}, borrowing_limit={A: 0})
    job = ours("a", 1, shapes=(shape(1), shape(1, B)))
    assert starts(snapshot(job), replace(pool(2, b=2), quotas={"vision": limit}))["a"].shape.vector == of(
        1, B
    )


def test_spot_is_never_limited() -> None:
    rules = replace(shared(2, {"vision": quota(0, 0)}), spot_capacity={A: 2})
    assert decided(snapshot(ours("a", 1, vector=of(2, spot=True))), rules) == [("start", "a")]


def test_what_a_team_borrows_is_what_it_uses_beyond_its_own() -> None:
    live = [
        running("a", team="vision", vector={**of(3), **of(1, B)}),
        running("b", team="vision", vector=of(5, spot=True)),
        running("c", team="other"),
    ]
    found = Quotas.of(shared(9, {"vision": quota(2)}), live, [])
    assert found.borrowed("vision") == {Capacity(A): 1, Capacity(B): 1}
    assert found.borrowed("other") == of(1)
    assert found.borrowed("nobody") == {}
    assert Quotas.of(shared(9, {"vision": quota(3)}), live, []).borrowed("vision") == of(1, B)
