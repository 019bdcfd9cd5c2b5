"""Where jobs start, whom they pass, and what they wait for: seen through whole plans."""

from dataclasses import replace
from typing import Any

import pytest
from trainmaster.core.jobs.instances import Capacity, Choice, Shape, Vector
from trainmaster.core.jobs.model import JobState
from trainmaster.core.planning.planner import plan
from trainmaster.core.planning.refusal_records import AccountLimit
from trainmaster.core.planning.snapshot import PreemptionReservation, RunningJob, Snapshot, WaitingJob
from trainmaster.core.policy import Order, PoolPolicy, WarmPool

from tests.builders import NOON, A, B, minutes, of, pool, running, snapshot, waiting
from tests.unit.core.planning.plans import decided, shape, starts, told, warm

S = JobState
TWO_TYPES = pool(2, b=2)
KEEPS_WARM = WarmPool(keep_alive=minutes(10), retain=minutes(0), max_idle=minutes(30))


def warming(capacity: int) -> PoolPolicy:
    return replace(pool(capacity, b=capacity), warm_pool=KEEPS_WARM)


def retaining(capacity: int) -> PoolPolicy:
    """Warm pools are given up only where their capacity is needed."""
    return replace(warming(capacity), warm_pool=replace(KEEPS_WARM, retain=minutes(30)))


def with_warm(*jobs: Any, pools: tuple[Any, ...], **fields: Any) -> Snapshot:
    """A pool in which ``warm`` is what its warm pools keep."""
    counted: dict[Capacity, int] = {}
    for one in pools:
        for capacity, count in one.vector.items():
            counted[capacity] = counted.get(capacity, 0) + count
    return snapshot(*jobs, warm=counted, warm_pools=pools, **fields)


# ---- backfill

LATE = waiting("late", minutes_ago=1)
FIRST = waiting("wide", n=2, minutes_ago=5)


def busy(ends: float | None = None, **fields: Any) -> RunningJob:
    """Runs, is nobody's victim, and is certain to have ended so many minutes from now."""
    return running("r", priority=9, ends_by=None if ends is None else NOON + minutes(ends), **fields)


@pytest.mark.parametrize(
    ("world", "rules", "expected"),
    [
        pytest.param(
            snapshot(
                busy(100),
                FIRST,
                LATE,
            ),
            pool(2),
            [("start", "late")],
            id="certain to be gone when the first can start: passes it",
        ),
        pytest.param(
            snapshot(
                busy(99),
                FIRST,
                LATE,
            ),
            pool(2),
            [],
            id="a minute too long: the wait for instances and ten minutes of slack count too",
        ),
        pytest.param(
            snapshot(
                busy(9, n=2),
                FIRST,
                LATE,
            ),
            pool(3),
            [("start", "late")],
            id="beside what the first will take: passes it, however long",
        ),
        pytest.param(
            snapshot(
                busy(9, n=2),
                FIRST,
                LATE,
                waiting("later"),
            ),
            replace(pool(3), capacity={A: 4}),
            [("start", "wide")],
            id="fits after all: nobody has to pass anybody",
        ),
        pytest.param(
            snapshot(
                busy(9, n=3),
                waiting("wide", n=4, minutes_ago=5),
                waiting("one", minutes_ago=2),
                waiting("two", minutes_ago=1),
            ),
            pool(5),
            [("start", "one")],
            id="what one has taken of the rest is not there for the next",
        ),
        pytest.param(
            snapshot(busy(), FIRST, LATE),
            pool(2),
            [],
            id="no end is certain: nobody passes",
        ),
        pytest.param(
            snapshot(
                busy(100),
                FIRST,
                LATE,
            ),
            replace(pool(2), order=Order(backfill=False)),
            [],
            id="backfill is switched off",
        ),
        pytest.param(
            snapshot(
                running("r", priority=9),
                FIRST,
                waiting("other", vector=of(1, B), minutes_ago=1),
            ),
            replace(TWO_TYPES, order=Order(backfill=False)),
            [("start", "other")],
            id="another type is nobody's way, whatever the rules of backfill",
        ),
    ],
)
def test_who_passes_the_first_that_waits(
    world: Snapshot, rules: PoolPolicy, expected: list[tuple[str, ...]]
) -> None:
    assert decided(world, rules) == expected


def test_a_reservation_tells_those_behind_it_when_and_for_what() -> None:
    world = snapshot(busy(99), FIRST, LATE)
    assert told(world, pool(2), "late") == (
        "reservation",
        (
            "ml.a.xlarge=1 would fit now, but may run until 2026-11-02 13:40 UTC; wide is ahead and waits for"
            " ml.a.xlarge=2, expected by 2026-11-02 13:39 UTC at the latest"
        ),
    )
    assert told(world, pool(2), "wide") == ("capacity", "needs ml.a.xlarge=2, free ml.a.xlarge=1")
    off = replace(pool(2), order=Order(backfill=False))
    assert told(world, off, "late") == (
        "ahead",
        "wide is ahead and waits for ml.a.xlarge=2, expected by 2026-11-02 13:39 UTC at the latest",
    )


def test_a_start_that_passes_another_says_so() -> None:
    world = snapshot(busy(100), FIRST, LATE)
    assert starts(world, pool(2))["late"].backfills
    assert not starts(snapshot(LATE), pool(2))["late"].backfills


# ---- several shapes

EITHER = (shape(2), shape(1, B))
SPOT_FIRST = (shape(1, spot=True), shape(1))


@pytest.mark.parametrize(
    ("world", "pinned"),
    [
        pytest.param(snapshot(waiting("j", shapes=EITHER)), of(2), id="the first that fits"),
        pytest.param(
            snapshot(running("r"), waiting("j", shapes=EITHER)),
            of(1, B),
            id="the next, if the first does not",
        ),
        pytest.param(
            snapshot(waiting("j", shapes=(shape(3), shape(1, B)))), of(1, B), id="not what never fits"
        ),
        pytest.param(
            snapshot(waiting("j", shapes=SPOT_FIRST)), of(1), id="spot is not for want of spot capacity"
        ),
    ],
)
def test_of_several_shapes_one_is_pinned(world: Snapshot, pinned: Vector) -> None:
    assert starts(world, TWO_TYPES)["j"].shape.vector == pinned


def test_of_several_shapes_one_with_a_warm_pool_goes_first() -> None:
    either = (shape(2, key="big"), shape(1, B, key="small"))
    world = with_warm(waiting("j", shapes=either), pools=(warm("w", key="small", vector=of(1, B)),))
    start = starts(world, warming(2))["j"]
    assert (start.shape.vector, start.reuses) == (of(1, B), warm("w", key="small", vector=of(1, B)))


def test_a_job_with_several_shapes_keeps_the_place_where_it_fits_first() -> None:
    world = snapshot(
        running("a", n=2, priority=9, ends_by=NOON + minutes(200)),
        running("b", vector=of(1, B), priority=9, ends_by=NOON + minutes(20)),
        waiting("first", shapes=(shape(2), shape(2, B)), minutes_ago=5),
        waiting("thief", vector=of(1, B)),
    )
    assert decided(world, TWO_TYPES) == []
    assert told(world, TWO_TYPES, "thief") == (
        "reservation",
        (
            "ml.b.xlarge=1 would fit now, but may run until 2026-11-02 13:40 UTC; first is ahead and waits"
            " for ml.b.xlarge=2, expected by 2026-11-02 12:20 UTC at the latest"
        ),
    )


# ---- InstancePreferences


def preferring(name: str, *shapes: Shape, **fields: Any) -> WaitingJob:
    return waiting(name, shapes=shapes, choice=Choice.SAGEMAKER, **fields)


@pytest.mark.parametrize(
    ("world", "held"),
    [
        pytest.param(
            snapshot(preferring("j", shape(2), shape(1, B))),
            {**of(2), **of(1, B)},
            id="every type with room is held until SageMaker has said which it took",
        ),
        pytest.param(
            snapshot(running("r"), preferring("j", shape(2), shape(1, B))),
            of(1, B),
            id="a type without room is cut",
        ),
        pytest.param(
            snapshot(preferring("j", shape(3), shape(1, B))), of(1, B), id="a type that never fits is cut"
        ),
        pytest.param(
            snapshot(
                preferring("j", shape(2), shape(1, B)),
                account_limits={Capacity(A): AccountLimit(limit=1, until=NOON + minutes(1), refusals=1)},
            ),
            of(1, B),
            id="a type of which the account allows too few is cut",
        ),
    ],
)
def test_of_preferences_all_that_have_room_are_held(world: Snapshot, held: Vector) -> None:
    start = starts(world, TWO_TYPES)["j"]
    assert start.shape.vector == held
    assert start.most_used.keys() == held.keys()


def test_preferences_that_nothing_has_room_for_wait_for_the_first() -> None:
    world = snapshot(
        running("a", n=2, priority=9),
        running("b", vector=of(2, B), priority=9),
        preferring("j", shape(2), shape(1, B)),
    )
    assert decided(world, TWO_TYPES) == []
    assert told(world, TWO_TYPES, "j") == ("capacity", "needs ml.a.xlarge=2, free ml.a.xlarge=0")


# ---- holds

HELD = PreemptionReservation(preemptor="new", vector=of(1), victims=("old",))


def test_nobody_is_started_into_room_held_for_a_preemptor_however_short() -> None:
    short = waiting("short", runs_at_most=minutes(1), priority=900)
    world = snapshot(running("old", state=S.PREEMPTING, stop_sent=True), waiting("new"), short, holds=(HELD,))
    assert decided(world, 1) == []
    assert told(world, pool(1), "new") == (
        "capacity",
        "old is stopping to make room for ml.a.xlarge=1",
    )


def test_room_held_for_a_preemptor_is_not_taken_twice_when_it_starts() -> None:
    held = replace(HELD, until=NOON + minutes(5))
    world = snapshot(waiting("new", minutes_ago=1), waiting("other"), waiting("more"), holds=(held,))
    assert decided(world, 2) == [("start", "new"), ("start", "more")]


def test_a_hold_names_only_victims_that_still_stop() -> None:
    world = snapshot(running("old", n=2), waiting("new"), holds=(HELD,))
    assert told(world, pool(2), "new") == ("capacity", "needs ml.a.xlarge=1, free ml.a.xlarge=0")


# ---- account limits


def limited(limit: int, *, until: float, refusals: int = 1) -> dict[str, Any]:
    learned = AccountLimit(limit=limit, until=NOON + minutes(until), refusals=refusals)
    return {"account_limits": {Capacity(A): learned}}


@pytest.mark.parametrize(
    ("world", "expected"),
    [
        pytest.param(
            snapshot(running("r"), waiting("a"), **limited(1, until=1)),
            [],
            id="nothing above the limit is tried",
        ),
        pytest.param(
            snapshot(running("r"), waiting("a"), waiting("b"), **limited(2, until=1)),
            [("start", "a")],
            id="up to the limit it goes on",
        ),
        pytest.param(
            snapshot(running("r"), waiting("a"), waiting("b"), **limited(1, until=0)),
            [("start", "a")],
            id="once the time is over one start, and no other, finds out",
        ),
        pytest.param(
            snapshot(waiting("a"), waiting("b"), waiting("c"), **limited(2, until=0)),
            [("start", "a"), ("start", "b"), ("start", "c")],
            id="starts below a limit are no probes",
        ),
        pytest.param(
            snapshot(running("low"), waiting("high", priority=9), **limited(1, until=1)),
            [],
            id="a limit that is full: nobody is stopped for a start the account refuses",
        ),
        pytest.param(
            snapshot(
                running("r"),
                waiting("a", minutes_ago=5),
                waiting("b", vector=of(1, B)),
                **limited(1, until=1),
            ),
            [("start", "b")],
            id="another type is not limited",
        ),
    ],
)
def test_a_learned_account_limit(world: Snapshot, expected: list[tuple[str, ...]]) -> None:
    assert decided(world, pool(4, b=1)) == expected


def test_a_limit_is_told_with_its_number_and_who_tries_next() -> None:
    world = snapshot(running("r"), waiting("a"), waiting("b"), **limited(1, until=1))
    assert told(world, pool(4), "a") == (
        "account-limit",
        (
            "needs ml.a.xlarge=1; AWS refused more than 1 ml.a.xlarge recently, and one job at a time checks"
            " whether it still does, the next one at 2026-11-02 12:01 UTC or later"
        ),
    )
    due = snapshot(running("r"), waiting("a"), waiting("b"), **limited(1, until=0))
    assert told(due, pool(4), "b") == (
        "account-limit",
        "needs ml.a.xlarge=1; a goes first, to see if the account allows more ml.a.xlarge",
    )


def test_only_a_start_above_the_limit_probes_it() -> None:
    found = starts(snapshot(waiting("a"), waiting("b"), waiting("c"), **limited(2, until=0)), pool(4))
    assert {name: start.probes for name, start in found.items()} == {
        "a": (),
        "b": (),
        "c": (Capacity(A),),
    }


def test_taking_a_warm_pool_asks_the_account_for_nothing_more() -> None:
    world = with_warm(
        running("r"), waiting("a", shapes=(shape(key="k"),)), pools=(warm("w"),), **limited(2, until=1)
    )
    start = starts(world, warming(3))["a"]
    assert (start.reuses, start.probes) == (warm("w"), ())
    two = with_warm(
        running("r"),
        waiting("a", shapes=(shape(key="k"),), minutes_ago=1),
        waiting("b"),
        pools=(warm("w"),),
        **limited(3, until=1),
    )
    assert decided(two, warming(4)) == [("start", "a"), ("start", "b")]


# ---- lowered capacity


def test_after_capacity_was_lowered_nothing_starts_until_use_is_below() -> None:
    assert decided(snapshot(running("r", n=3, priority=9), waiting("a")), 2) == []
    assert decided(snapshot(running("r", n=2, priority=9), waiting("a")), 2) == []
    assert decided(snapshot(running("r", n=1, priority=9), waiting("a")), 2) == [("start", "a")]


def test_a_job_too_big_for_a_lowered_pool_says_so_and_stands_in_nobody_s_way() -> None:
    world = snapshot(waiting("big", n=3, minutes_ago=5), waiting("small"))
    assert decided(world, 2) == [("start", "small")]
    assert told(world, pool(2), "big") == (
        "capacity",
        "needs ml.a.xlarge=3, the pool has ml.a.xlarge=2 in all",
    )


def test_nobody_is_preempted_for_more_than_the_pool_has_left() -> None:
    assert decided(snapshot(running("low", n=3), waiting("high", n=3, priority=9)), 2) == []


# ---- warm pools

KEYED = (shape(key="k"),)


@pytest.mark.parametrize(
    ("world", "expected"),
    [
        pytest.param(
            with_warm(waiting("a", shapes=KEYED), pools=(warm("w"),)),
            [("start", "a")],
            id="a job of the same key takes it",
        ),
        pytest.param(
            with_warm(running("r", priority=9), waiting("a", minutes_ago=1), pools=(warm("w"),)),
            [("release warm", "w")],
            id="its capacity is needed by a job of another key: given up",
        ),
        pytest.param(
            with_warm(running("low"), waiting("high", priority=9), pools=(warm("w"),)),
            [("release warm", "w")],
            id="given up rather than a job stopped",
        ),
        pytest.param(
            with_warm(running("low"), waiting("high", priority=9), pools=(warm("w", releasing=True),)),
            [("settle warm", "w")],
            id="being given up already: nobody is stopped meanwhile",
        ),
        pytest.param(
            with_warm(running("low"), waiting("high", priority=9), pools=(warm("w", left=0.5),)),
            [("release warm", "w")],
            id="about to expire: given up anyway rather than a job stopped",
        ),
        pytest.param(
            with_warm(running("low"), waiting("high", priority=9), pools=(warm("w", left=0),)),
            [("settle warm", "w")],
            id="past its time: nobody is stopped meanwhile",
        ),
        pytest.param(
            with_warm(
                running("low", minutes_ago=19),
                running("lower", minutes_ago=13),
                waiting("high", priority=9, n=2),
                pools=(warm("w"),),
            ),
            [("preempt for", "high", "lower"), ("release warm", "w")],
            id="given up beside a job that is stopped: no more are stopped than needed",
        ),
        pytest.param(
            with_warm(
                running("low"),
                running("gone", state=S.PREEMPTING, stop_sent=True),
                waiting("high", priority=9, n=2),
                pools=(warm("w"),),
            ),
            [("release warm", "w")],
            id="given up beside what is stopping already: nobody else is stopped",
        ),
        pytest.param(
            with_warm(waiting("a", minutes_ago=5), waiting("b", shapes=KEYED), pools=(warm("w"),)),
            [("start", "a"), ("start", "b")],
            id="kept for the job of its key while another has room beside it",
        ),
    ],
)
def test_warm_pools_in_a_plan(world: Snapshot, expected: list[tuple[str, ...]]) -> None:
    capacity = sum(world.used.values()) + sum(world.warm.values())
    room = 1 if all(step[0] == "start" for step in expected) and len(expected) > 1 else 0
    assert decided(world, retaining(capacity + room)) == expected


def test_a_warm_pool_that_is_retained_or_wanted_goes_with_the_victims_whose_room_is_not_enough() -> None:
    world = with_warm(running("low"), waiting("high", priority=9, n=2), pools=(warm("w"),))
    assert decided(world, retaining(2)) == [("preempt for", "high", "low"), ("release warm", "w")]
    wanting = replace(world, waiting=(*world.waiting, waiting("keyed", shapes=KEYED)))
    assert decided(wanting, warming(2)) == [("preempt for", "high", "low"), ("release warm", "w")]


def test_a_reservation_counts_on_warm_pools_being_given_up() -> None:
    world = with_warm(
        running("r", priority=9, ends_by=NOON + minutes(60)),
        running("s", priority=9, ends_by=NOON + minutes(90)),
        waiting("first", n=2, minutes_ago=5),
        waiting("next"),
        pools=(warm("w"),),
    )
    assert told(world, retaining(3), "next") == (
        "ahead",
        "first is ahead and waits for ml.a.xlarge=2, expected by 2026-11-02 13:00 UTC at the latest",
    )


def test_two_jobs_never_land_in_one_warm_pool() -> None:
    world = with_warm(
        waiting("a", shapes=KEYED, minutes_ago=1), waiting("b", shapes=KEYED), pools=(warm("w"),)
    )
    found = starts(world, warming(3))
    assert {name: start.reuses for name, start in found.items()} == {"a": warm("w"), "b": None}
    assert {name: (start.most_used, start.warm) for name, start in found.items()} == {
        "a": (of(2), of(1)),
        "b": (of(1), of(0)),
    }
    assert starts(world, warming(2)).keys() == {"a"}, "until a is known to be in it, it may be there beside a"


def test_a_warm_pool_that_a_running_job_counts_on_is_nobody_s_room_and_nobody_is_stopped_for_it() -> None:
    world = snapshot(running("a", reuses="w"), waiting("b", priority=9))
    assert decided(world, 2) == []
    assert decided(world, 3) == [("start", "b")]


def test_without_keep_alive_no_start_takes_a_warm_pool() -> None:
    world = with_warm(waiting("a", shapes=KEYED), pools=(warm("w"),))
    rules = replace(pool(2), warm_pool=replace(KEEPS_WARM, keep_alive=minutes(0)))
    assert starts(world, rules)["a"].reuses is None


def test_the_preemptor_lands_in_the_warm_pool_that_its_victim_left() -> None:
    world = with_warm(
        waiting("new", shapes=KEYED, priority=3),
        waiting("thief", shapes=KEYED, priority=900),
        pools=(warm("old"),),
        holds=(replace(HELD, until=NOON + minutes(5)),),
    )
    assert decided(world, warming(1)) == [("start", "new")]
    start = starts(world, warming(1))["new"]
    assert (start.reuses, start.ends_hold, start.most_used, start.warm) == (warm("old"), True, of(0), of(1))


# ---- paused


def test_paused_nothing_starts_or_is_stopped_and_everybody_hears_why() -> None:
    world = with_warm(
        running("low"),
        running("told", state=S.STOPPING),
        waiting("high", priority=9),
        due=(waiting("rested"),),
        pools=(warm("w"),),
        paused=True,
    )
    assert decided(world, warming(3)) == [("stop", "told"), ("unpark", "rested"), ("release warm", "w")]
    assert plan(world, warming(3), now=NOON).reasons["high"].code == "paused"
