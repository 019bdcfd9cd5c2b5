"""O8: what a team lends can be called back, so who cannot be stopped starts within its team's own quota."""

from dataclasses import replace
from typing import Any

import pytest
from trainmaster.core.jobs.model import JobState
from trainmaster.core.planning.actions import Preempt
from trainmaster.core.planning.loans import promised_quota
from trainmaster.core.planning.planner import plan
from trainmaster.core.planning.quotas import BORROWER, COVERED, Quotas
from trainmaster.core.planning.snapshot import PreemptionReservation, RunningJob, WaitingJob
from trainmaster.core.policy import Preemption, Quota

from tests.builders import NOON, A, B, of, pool, running, snapshot, waiting
from tests.unit.core.planning.plans import decided, quota, shape, shared, starts, told

TWO_EACH = {"vision": quota(2), "speech": quota(2)}
OWN = {A: 2}
"""What team vision was promised when the job was submitted."""


def fixed(name: str, minutes_ago: float = 1, **fields: Any) -> WaitingJob:
    """A job of team vision with trainmaster:preemptible=false."""
    values: dict[str, Any] = {"team": "vision", "preemptible": False, "own_quota": OWN} | fields
    return waiting(name, minutes_ago=minutes_ago, **values)


def fixed_live(name: str, minutes_ago: float = 30, **fields: Any) -> RunningJob:
    values: dict[str, Any] = {"team": "vision", "preemptible": False, "own_quota": OWN} | fields
    return running(name, minutes_ago=minutes_ago, **values)


def ours(name: str, minutes_ago: float = 1, **fields: Any) -> WaitingJob:
    return waiting(name, minutes_ago=minutes_ago, team="vision", **fields)


def test_O8_three_that_cannot_be_stopped_start_two_and_the_third_waits_with_quota() -> None:
    world = snapshot(fixed("a", 3), fixed("b", 2), fixed("c", 1))
    rules = shared(4, TWO_EACH)
    assert list(starts(world, rules)) == ["a", "b"]
    code, message = told(world, rules, "c")
    assert code == "quota"
    assert message == (
        "needs ml.a.xlarge=1 of the team's own quota, as it cannot be stopped"
        " (trainmaster:preemptible=false): team vision uses 2 of its quota of 2; it starts when jobs of the"
        " team end"
    )


def test_one_that_its_quota_never_covers_does_not_say_that_it_starts_when_others_end() -> None:
    world = snapshot(fixed("c", own_quota={A: 0}))
    _, message = told(world, shared(3, {"vision": quota(0)}), "c")
    assert message.endswith("uses 0 of its quota of 0; it waits until an admin raises the quota")


@pytest.mark.parametrize(
    "others",
    [
        pytest.param((running("r", team="vision", n=2),), id="of jobs that can be stopped"),
        pytest.param((fixed_live("r", n=2),), id="of jobs that cannot"),
        pytest.param(
            (running("r", team="vision", n=2, preemptible=False),), id="of jobs of earlier releases"
        ),
    ],
)
def test_O8_a_quota_that_is_in_use_is_in_use_whatever_is_free(others: tuple[RunningJob, ...]) -> None:
    world = snapshot(*others, fixed("c"), ours("d"))
    assert list(starts(world, shared(4, TWO_EACH))) == ["d"]  # what can be stopped may borrow
    assert told(world, shared(4, TWO_EACH), "c")[0] == "quota"


def test_O8_it_starts_when_a_job_of_its_team_has_ended() -> None:
    world = snapshot(fixed_live("r"), fixed("c"))
    assert list(starts(world, shared(4, TWO_EACH))) == ["c"]


@pytest.mark.parametrize(
    ("needs_checkpoint", "has_checkpoint", "is_kept"),
    [(True, False, True), (True, True, False), (False, False, False)],
)
def test_O8_without_checkpoints_where_those_are_needed_likewise(
    *, needs_checkpoint: bool, has_checkpoint: bool, is_kept: bool
) -> None:
    live = running("r", team="vision", n=2)
    job = fixed("c", preemptible=None, has_checkpoint=has_checkpoint)
    rules = shared(4, TWO_EACH, needs_checkpoint=needs_checkpoint)
    found = plan(snapshot(live, job), rules, now=NOON)
    assert bool(found.actions) is not is_kept
    if is_kept:
        assert "preemption.needs_checkpoint spares such jobs" in found.reasons["c"].message


@pytest.mark.parametrize(
    ("job", "quotas"),
    [
        pytest.param(fixed("c", own_quota=None), TWO_EACH, id="before this rule"),
        pytest.param(fixed("c", own_quota={A: 3}), TWO_EACH, id="before its quota was lowered"),
        pytest.param(fixed("c"), {"speech": quota(2)}, id="before its quota was taken away"),
        pytest.param(fixed("c"), {}, id="before the quotas were removed"),
    ],
)
def test_O8_a_job_keeps_the_rule_that_it_was_submitted_under(
    job: WaitingJob, quotas: dict[str, Quota]
) -> None:
    world = snapshot(running("r", team="vision", n=2), job)
    assert list(starts(world, shared(4, quotas))) == ["c"]


def test_O8_a_raised_quota_counts_for_those_that_wait() -> None:
    world = snapshot(running("r", team="vision", n=2), fixed("c", 2), fixed("d", 1))
    assert list(starts(world, shared(4, {"vision": quota(3)}))) == ["c"]


def test_O8_spot_runs_outside_of_quotas() -> None:
    rules = replace(shared(4, TWO_EACH), spot_capacity={A: 1})
    world = snapshot(running("r", team="vision", n=2), fixed("c", vector=of(1, spot=True)))
    assert list(starts(world, rules)) == ["c"]


def test_O8_a_more_urgent_job_takes_the_quota_from_one_that_can_be_stopped_and_stops_nobody() -> None:
    """The other one borrows from then on: it is what the lender calls back."""
    low = running("low", team="vision", n=2)
    world = snapshot(low, fixed("urgent", priority=5, n=2))
    rules = shared(4, TWO_EACH)
    assert decided(world, rules) == [("start", "urgent")]
    both = snapshot(low, fixed_live("urgent", priority=5, n=2), waiting("mine", team="speech"))
    assert decided(both, rules) == [("preempt for", "mine", "low")]


def test_O8_who_cannot_be_stopped_is_covered_whoever_comes_with_a_higher_priority() -> None:
    live = fixed_live("fixed", n=2)
    above = running("above", team="vision", priority=9, n=2)
    found = Quotas.of(shared(4, TWO_EACH), (live, above), ())
    assert (found.tier("fixed"), found.tier("above")) == (COVERED, BORROWER)
    assert decided(snapshot(live, above, waiting("mine", team="speech")), shared(4, TWO_EACH)) == [
        ("preempt for", "mine", "above")
    ]


def test_O8_one_that_is_covered_and_one_that_would_fit_alone_do_not_start_together() -> None:
    ahead = ours("ahead", 9, vector={**of(1), **of(1, B)})  # has part of the quota, and cannot start
    rules = replace(pool(4, b=0), quotas={"vision": Quota(nominal={A: 2, B: 1}), "speech": quota(2)})
    world = snapshot(ahead, fixed("wide", 5, n=2), fixed("narrow", 1))
    assert list(starts(world, rules)) == ["narrow"]
    assert list(starts(snapshot(ahead, fixed("wide", 5, n=2)), rules)) == ["wide"]


def test_O8_a_job_that_others_were_stopped_for_starts_though_a_more_urgent_one_came() -> None:
    hold = PreemptionReservation(preemptor="c", vector=of(2))
    world = snapshot(fixed("c", 9, n=2), ours("urgent", 1, priority=9, n=2), holds=(hold,))
    assert list(starts(world, shared(2, {"vision": quota(2)}))) == ["c"]


def test_O8_the_best_shape_that_its_quota_covers_is_taken() -> None:
    rules = replace(pool(4, b=4), quotas={"vision": Quota(nominal={A: 1, B: 2})})
    world = snapshot(fixed("c", shapes=(shape(2), shape(2, B)), own_quota={A: 1, B: 2}))
    assert starts(world, rules)["c"].shape.vector == of(2, B)


def test_O8_it_does_not_stop_its_own_team_for_what_it_may_not_have() -> None:
    world = snapshot(running("low", team="vision", minutes_ago=90, n=2), fixed("c", 0, priority=1))
    aged = ours("ahead", 500, priority=1, n=2)
    found = plan(snapshot(*world.running, *world.waiting, aged), shared(2, {"vision": quota(2)}), now=NOON)
    assert not any(isinstance(one, Preempt) and one.job.name == "c" for one in found.actions)


# ---- reclaims


def test_O8_max_per_job_protects_against_priority_alone() -> None:
    often = running("often", team="speech", preemptions=3)
    rules: dict[str, Any] = {"max_per_job": 3}
    quotas = {"vision": quota(1), "speech": quota(0)}
    assert decided(snapshot(often, ours("mine")), shared(1, quotas), **rules) == [
        ("preempt for", "mine", "often")
    ]
    urgent = waiting("urgent", team="speech", priority=9)
    assert decided(snapshot(often, urgent), shared(1, {"speech": quota(1)}), **rules) == []
    assert decided(snapshot(often, urgent), shared(1, {"speech": quota(1)}), max_per_job=4) == [
        ("preempt for", "urgent", "often")
    ]


def test_O8_a_borrower_that_was_stopped_often_enough_is_not_stopped_by_other_borrowers() -> None:
    often = running("often", team="speech", preemptions=3)
    urgent = waiting("urgent", team="third", priority=9)
    assert decided(snapshot(often, urgent), shared(1, {"vision": quota(1)}), max_per_job=3) == []


def test_O8_a_preemption_names_those_whose_loans_are_called_back() -> None:
    live = (running("theirs", team="speech"), running("own", team="vision", minutes_ago=10))
    job = ours("mine", priority=5, n=2)
    (action,) = plan(snapshot(*live, job), shared(2, {"vision": quota(2)}), now=NOON).actions
    assert isinstance(action, Preempt)
    assert {victim.name for victim in action.victims} == {"theirs", "own"}
    assert action.reclaimed == {"theirs"}
    assert action.reclaims


def test_O8_what_is_promised_is_the_nominal_quota_of_each_type_that_is_asked_for() -> None:
    rules = replace(pool(4, b=4), quotas={"vision": Quota(nominal={A: 1})})
    assert promised_quota(rules, "vision", [B, A]) == {A: 1, B: 0}
    assert promised_quota(rules, "other", [A]) == {A: 0}
    assert promised_quota(pool(4), "vision", [A]) is None


def test_O8_an_attempt_that_is_stopping_still_uses_its_quota() -> None:
    leaving = replace(fixed_live("r", n=2), state=JobState.STOPPING)
    world = snapshot(leaving, fixed("c"))
    assert list(starts(world, replace(shared(4, TWO_EACH), preemption=Preemption()))) == []


@pytest.mark.parametrize(
    ("rules", "counted"),
    [
        pytest.param(Preemption(), 2, id="its owner's wish"),
        pytest.param(Preemption(needs_checkpoint=True), 6, id="its owner's wish, or no checkpoints"),
    ],
)
def test_each_running_job_that_cannot_be_stopped_counts_with_all_that_it_holds(
    rules: Preemption, counted: int
) -> None:
    live = (
        fixed_live("a"),
        fixed_live("b", has_checkpoint=True),
        running("c", team="vision", has_checkpoint=True),
        running("d", team="vision", n=4, has_checkpoint=False),
    )
    loans = Quotas.of(replace(shared(8, TWO_EACH), preemption=rules), live, ()).loans
    assert loans.fixed_of("vision") == {A: counted}
