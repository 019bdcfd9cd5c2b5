"""Replays of jobs that wait for others: a child is in the queue once its conditions hold."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from trainmaster.core.jobs.end_conditions import ConditionKind
from trainmaster.core.policy import Policy, parse_policy
from trainmaster_client.simulate.comparison.outcomes import Fate, JobOutcome, outcomes_of
from trainmaster_client.simulate.engine.event_loop import groups
from trainmaster_client.simulate.engine.past_jobs import AfterEnd, PastJob
from trainmaster_client.simulate.io.replaying import plain_queue, replay
from trainmaster_client.simulate.io.start_questions import NAME, ask

from tests.unit.client.simulate.replayed import G5, HIGH, LOW, history, job, policy

P5 = "ml.p5.48xlarge"
OK, ANY, NOT_OK = ConditionKind.AFTER_OK, ConditionKind.AFTER_ANY, ConditionKind.AFTER_NOT_OK


def child(name: str, parent: str, kind: ConditionKind = OK, **fields: Any) -> PastJob:
    return replace(job(name, **fields), after=(AfterEnd(kind=kind, job=parent),))


def outcomes(*jobs: PastJob, by: Policy | None = None, plain: bool = False) -> dict[str, JobOutcome]:
    of, rules = history(*jobs), by or policy(4)
    return outcomes_of(of, plain_queue(of, rules) if plain else replay(of, rules, label="a"))


@pytest.mark.parametrize("plain", [False, True])
def test_a_child_starts_after_its_parent_and_waits_from_then_on(*, plain: bool) -> None:
    ended = outcomes(job("a", trains=1000), child("b", "a", at=5), child("c", "b", at=5), plain=plain)
    for parent, its_child in (("a", "b"), ("b", "c")):
        over = ended[parent].over_s
        assert over is not None
        assert ended[its_child].eligible_s == over
        start_s = ended[its_child].start_s
        assert start_s is not None
        assert start_s >= over
        assert ended[its_child].wait_s == start_s - over
    assert ended["c"].wait_s is not None
    assert ended["c"].wait_s < 60, "four instances are free"


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize(
    ("end", "kind", "runs"),
    [
        ("completed", OK, True),
        ("completed", ANY, True),
        ("completed", NOT_OK, False),
        ("failed", OK, False),
        ("failed", ANY, True),
        ("failed", NOT_OK, True),
        ("stopped", OK, False),
        ("stopped", NOT_OK, True),
    ],
)
def test_a_child_runs_if_its_parent_ends_as_it_asks_for(
    *, end: str, kind: ConditionKind, runs: bool, plain: bool
) -> None:
    ended = outcomes(job("a", end=end), child("b", "a", kind), child("c", "b", ANY), plain=plain)
    assert ended["b"].fate is (Fate.COMPLETED if runs else Fate.NEVER_ELIGIBLE)
    assert (ended["b"].wait_s is None) is not runs
    assert list(ended["b"].waiting_intervals(10_000)) == [] or runs
    assert ended["c"].fate is Fate.COMPLETED, "whatever becomes of b, it ends"


def test_neither_a_preemption_nor_a_retry_of_the_parent_releases_its_child() -> None:
    once_more = policy(1, preemption={"cost": {"enabled": False}}, rest={"recovery": {"min_runtime": "0s"}})
    jobs = (
        job("a", priority=LOW, trains=4000, saves=100, breaks=[(3000, "hardware")]),
        job("urgent", at=1000, priority=HIGH, trains=500),
        child("b", "a", at=1),
    )
    ended = outcomes(*jobs, by=once_more)
    assert len(ended["a"].attempts) == 3
    assert ended["b"].start_s is not None
    assert ended["b"].start_s >= (ended["a"].over_s or 0) > 4000


def test_a_child_of_two_waits_for_both_and_is_withdrawn_without_a_start() -> None:
    both = (AfterEnd(kind=OK, job="a"), AfterEnd(kind=ANY, job="b"))
    jobs = (
        job("a", trains=100),
        job("b", trains=2000),
        replace(job("c", at=1), after=both),
        replace(job("d", at=1), after=both, withdrawn_after=timedelta(seconds=500), trains_for=timedelta()),
        child("e", "d", ANY, at=2),
    )
    ended = outcomes(*jobs)
    assert ended["c"].eligible_s == ended["b"].over_s
    assert (ended["d"].fate, ended["d"].attempts) == (Fate.WITHDRAWN, ())
    assert ended["e"].eligible_s == 501
    assert ended["e"].start_s == 501


def test_a_child_of_a_refused_job_is_refused_and_so_is_its_child() -> None:
    found = replay(history(job("a", n=9), child("b", "a"), child("c", "b")), policy(2), label="a")
    assert found.refused["b"] == "waits for a: refused"
    assert found.refused["c"] == "waits for b: refused"
    assert found.attempts == []


def two_pools(*teams: dict[str, Any]) -> Policy:
    pools = [
        {"name": "small", "capacity": {G5: 1}},
        {"name": "big", "capacity": {P5: 1}},
        {"name": "other", "capacity": {"ml.g6.xlarge": 1}},
    ]
    return parse_policy({"version": 1, "pools": pools, "teams": list(teams)})


def test_pools_whose_jobs_wait_for_each_other_are_replayed_together() -> None:
    jobs = (job("a"), child("b", "a", instances={P5: 1}), job("c", instances={"ml.g6.xlarge": 1}))
    assert groups(history(*jobs), two_pools()) == [("small", "big"), ("other",)]
    ended = outcomes(*jobs, by=two_pools())
    assert ended["b"].eligible_s == ended["a"].over_s
    assert groups(history(job("a"), job("b", instances={P5: 1})), two_pools()) == [
        ("small",),
        ("big",),
        ("other",),
    ]
    budget = {"name": "vision", "budget": {"usd_per_month": 5}}
    assert groups(history(*jobs), two_pools(budget)) == [("small", "big", "other")]


def test_each_answer_about_a_start_is_of_a_copy_that_knows_who_waits_for_whom() -> None:
    busy = history(
        job("a", trains=5000),
        child("b", "a", at=1, trains=9000),
        child("c", "b", at=2, trains=9000),
        job("last", at=20_000, trains=10),
    )
    for answer in ask(busy, policy(1), job("mine", trains=700)).answers:
        second = (answer.submitted_at - busy.begins).total_seconds()
        with_it = history(*sorted((*busy.jobs, job(NAME, at=second, trains=700)), key=_submission))
        (start_s,) = [
            row.start_s for row in replay(with_it, policy(1), label="a").attempts if row.job == NAME
        ]
        assert answer.waits == timedelta(seconds=start_s - second)


def _submission(past: PastJob) -> tuple[Any, ...]:
    return past.submitted_at, past.name == NAME
