"""Preemptions whose victims were not all asked at once."""

from dataclasses import replace

from trainmaster.core.jobs.model import JobState
from trainmaster.core.planning.actions import Preempt
from trainmaster.core.planning.planner import plan
from trainmaster.core.planning.snapshot import PreemptionReservation, RunningJob, Snapshot

from tests.builders import NOON, minutes, of, pool, running, snapshot, waiting
from tests.unit.core.planning.plans import decided, quota, shared, told

BEGUN = PreemptionReservation(preemptor="new", vector=of(3), missing=of(2))
"""One of three was asked."""


def small(count: int) -> tuple[RunningJob, ...]:
    return tuple(running(f"r{number}") for number in range(count))


def asked(name: str, *, by: str = "new", n: int = 1, team: str = "default") -> RunningJob:
    state = JobState.PREEMPTING
    return running(name, state=state, stop_sent=True, preempted_for=by, n=n, team=team)


def begun(*others: RunningJob, **fields: object) -> Snapshot:
    """``a`` stops for ``new``, which needs three."""
    values: dict[str, object] = {"holds": (BEGUN,)} | fields
    return snapshot(asked("a"), *others, waiting("new", priority=9, n=3), **values)


def test_the_others_are_asked_under_the_same_reservation() -> None:
    world = begun(*small(2))
    assert decided(world, 3) == [("preempt for", "new", "r0", "r1")]
    (action,) = plan(world, pool(3), now=NOON).actions
    assert isinstance(action, Preempt)
    assert (action.goes_on, action.short) == (BEGUN, of(2))


def test_who_waits_for_them_is_said_all_of_them() -> None:
    world = begun(*small(2))
    assert told(world, pool(3), "new") == (
        "capacity",
        "a, r0, r1 are stopping to make room for ml.a.xlarge=3",
    )


def test_a_long_list_of_them_is_cut() -> None:
    world = snapshot(*small(30), waiting("new", priority=9, n=30))
    names = ", ".join(sorted(f"r{number}" for number in range(30))[:10])
    assert told(world, pool(30), "new")[1].startswith(f"{names}, and 20 more are stopping")


def test_nobody_is_asked_where_the_rest_is_not_enough_any_more() -> None:
    assert decided(begun(running("r0"), running("fixed", preemptible=False)), 3) == []


def test_fewer_are_asked_where_something_came_free() -> None:
    assert decided(begun(*small(1)), 3) == [("preempt for", "new", "r0")]


def test_a_reservation_with_a_deadline_is_not_gone_on_with() -> None:
    late = replace(BEGUN, until=NOON + minutes(5))
    assert decided(begun(*small(2), holds=(late,)), 3) == []


def test_the_first_victims_have_ended_and_it_is_gone_on_with_not_limited() -> None:
    world = snapshot(*small(2), waiting("new", priority=9, n=3), holds=(BEGUN,))
    assert decided(world, 3) == [("preempt for", "new", "r0", "r1")]


def test_two_interrupted_ones_stop_nobody_for_each_other() -> None:
    other = PreemptionReservation(preemptor="other", vector=of(2), missing=of(1))
    world = snapshot(
        asked("a"),
        asked("b", by="other"),
        *small(6),
        waiting("new", priority=9, n=3),
        waiting("other", priority=8, n=2),
        holds=(BEGUN, other),
    )
    assert decided(world, 8) == [("preempt for", "new", "r0", "r1"), ("preempt for", "other", "r2")]


def test_what_is_missing_is_promised_to_nobody_else() -> None:
    world = begun(*small(2), waiting("late", priority=5))  # type: ignore[arg-type]
    assert decided(world, 3) == [("preempt for", "new", "r0", "r1")]


def test_a_team_at_its_borrowing_limit_goes_on_among_its_own() -> None:
    world = snapshot(
        asked("a", team="vision"),
        running("own0", team="vision"),
        running("own1", team="vision"),
        running("theirs", team="speech"),
        waiting("new", priority=9, n=3, team="vision"),
        holds=(BEGUN,),
    )
    rules = shared(6, {"vision": quota(1, 2), "speech": quota(1)})
    assert decided(world, rules) == [("preempt for", "new", "own0", "own1")]
