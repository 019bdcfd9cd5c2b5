"""Which warm pools are taken, given up, kept for longer, and asked about."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from trainmaster.core.jobs.instances import Capacity, Shape, Vector
from trainmaster.core.jobs.model import JobState
from trainmaster.core.planning.actions import Action, KeepWarm, ReleaseWarm, SettleWarm
from trainmaster.core.planning.planner import plan
from trainmaster.core.planning.refusal_records import AccountLimit
from trainmaster.core.planning.snapshot import WarmPool
from trainmaster.core.planning.warm_pools import Upkeep, keys_wanted, matching, to_release
from trainmaster.core.policy import WarmPool as WarmRules

from tests.builders import NOON, B, minutes, of, pool, running, snapshot, waiting
from tests.unit.core.planning.plans import shape, starts, warm

RULES = WarmRules(keep_alive=minutes(10), retain=minutes(0), max_idle=minutes(30))


@pytest.mark.parametrize(
    ("asked", "pools", "expected"),
    [
        pytest.param(shape(key="k"), [warm("w")], "w", id="of the same key"),
        pytest.param(shape(key="x"), [warm("w")], None, id="not of another key"),
        pytest.param(shape(), [warm("w")], None, id="not for what SageMaker keeps no warm pools of"),
        pytest.param(shape(key="k"), [warm("w", releasing=True)], None, id="not one that is being given up"),
        pytest.param(shape(key="k"), [warm("w", left=1)], None, id="not one that may be gone in a minute"),
        pytest.param(shape(key="k"), [warm("w", left=1.01)], "w", id="one that lasts for more than a minute"),
        pytest.param(
            shape(key="k"),
            [warm("z", left=3), warm("b", left=2), warm("a", left=3)],
            "b",
            id="the first to end",
        ),
    ],
)
def test_which_warm_pool_a_job_lands_in(asked: Shape, pools: list[WarmPool], expected: str | None) -> None:
    for order in (pools, pools[::-1]):
        found = matching(asked, order, now=NOON)
        assert (found.training_job_name if found else None) == expected


@pytest.mark.parametrize(
    ("asked", "free", "pools", "expected"),
    [
        pytest.param(of(1), of(1), [warm("w")], (), id="it fits already"),
        pytest.param(of(1), of(0), [warm("w")], ("w",), id="as many as are needed"),
        pytest.param(of(2), of(1), [warm("a", left=3), warm("b", left=4)], ("a",), id="and no more"),
        pytest.param(of(3), of(0), [warm("a"), warm("b")], (), id="none if that is not enough"),
        pytest.param(of(1), of(0), [warm("w", vector=of(1, B))], (), id="none of another type"),
        pytest.param(of(1), of(0), [warm("b"), warm("a")], ("a",), id="of equal ones always the same"),
        pytest.param(
            of(1),
            of(0),
            [warm("a", key="wanted", left=3), warm("b", left=4)],
            ("b",),
            id="unwanted ones first",
        ),
        pytest.param(
            of(1), of(0), [warm("a", left=4), warm("b", left=3)], ("b",), id="the first to end first"
        ),
        pytest.param(
            of(2), of(-1), [warm("a", vector=of(3))], ("a",), id="what is missing below zero counts"
        ),
    ],
)
def test_which_warm_pools_are_given_up(
    asked: Vector, free: Vector, pools: list[WarmPool], expected: tuple[str, ...]
) -> None:
    for order in (pools, pools[::-1]):
        found = to_release(asked, free, order, wanted=frozenset({"wanted"}))
        assert tuple(one.training_job_name for one in found) == expected


def upkeep(
    one: WarmPool,
    *,
    rules: WarmRules = RULES,
    wanted: bool = False,
    limited: frozenset[Capacity] = frozenset(),
) -> Action | None:
    keys = frozenset({one.warm_key}) if wanted else frozenset()
    keeper = Upkeep(
        rules=rules, reused=frozenset(), released=frozenset(), wanted=keys, limited=limited, now=NOON
    )
    actions = keeper.actions([one])
    return actions[0] if actions else None


RETAINING = replace(RULES, retain=minutes(15))


@pytest.mark.parametrize(
    ("one", "rules", "wanted", "until"),
    [
        pytest.param(warm("w", left=2), RULES, True, 10, id="a job that can use it is due: kept for longer"),
        pytest.param(warm("w", left=2.1), RULES, True, None, id="not before its end is near"),
        pytest.param(warm("w", left=2, age=25), RULES, True, 5, id="up to the longest idle time, no longer"),
        pytest.param(warm("w", left=2, age=28), RULES, True, None, id="as long as it may be kept already"),
        pytest.param(warm("w", left=2, age=8), RETAINING, False, 7, id="retained though nobody waits"),
        pytest.param(warm("w", left=9, age=8), RETAINING, False, None, id="retained as it is"),
        pytest.param(
            warm("w", left=2, age=1),
            replace(RETAINING, max_idle=minutes(5)),
            False,
            4,
            id="retained, but no longer than the longest idle time",
        ),
        pytest.param(
            warm("w", left=2),
            replace(RULES, keep_alive=timedelta()),
            True,
            None,
            id="warm pools were switched off",
        ),
    ],
)
def test_a_warm_pool_that_is_kept(
    one: WarmPool, rules: WarmRules, *, wanted: bool, until: float | None
) -> None:
    expected = None if until is None else KeepWarm(warm_pool=one, until=NOON + minutes(until))
    assert upkeep(one, rules=rules, wanted=wanted) == expected


@pytest.mark.parametrize(
    ("one", "rules", "wanted", "because"),
    [
        pytest.param(warm("w"), RULES, False, "no waiting job can use it", id="nobody waits for it"),
        pytest.param(
            warm("w", age=-1),
            RULES,
            False,
            "no waiting job can use it",
            id="SageMaker's clock is ahead",
        ),
        pytest.param(
            warm("w", age=15), RETAINING, False, "no waiting job can use it", id="retained for long enough"
        ),
        pytest.param(
            warm("w", age=30), RULES, True, "it has been idle for too long", id="wanted, but for too long"
        ),
    ],
)
def test_a_warm_pool_that_is_given_up(one: WarmPool, rules: WarmRules, *, wanted: bool, because: str) -> None:
    assert upkeep(one, rules=rules, wanted=wanted) == ReleaseWarm(warm_pool=one, because=because)


@pytest.mark.parametrize(
    ("limited", "vector", "wanted", "expected"),
    [
        pytest.param(of(1), of(1), False, "given up", id="it counts towards the limit, and helps nobody"),
        pytest.param(of(1), of(1), True, "kept", id="a waiting job starts in it without asking for more"),
        pytest.param(of(1, B), of(1), False, "kept", id="another type is limited"),
        pytest.param(of(1), {**of(1), **of(1, B)}, False, "given up", id="one of its types is limited"),
        pytest.param(of(1), of(1, spot=True), False, "kept", id="spot instances have a limit of their own"),
    ],
)
def test_where_the_account_gives_no_more_nothing_is_retained_for_nobody(
    limited: Vector, vector: Vector, *, wanted: bool, expected: str
) -> None:
    """Though the time that the pool retains it is not over."""
    one = warm("w", left=2, age=8, vector=vector)
    found = upkeep(one, rules=RETAINING, wanted=wanted, limited=frozenset(limited))
    if expected == "kept":
        assert isinstance(found, KeepWarm)
    else:
        assert found == ReleaseWarm(warm_pool=one, because="no waiting job can use it")


@pytest.mark.parametrize(
    ("refused", "asks", "expected"),
    [
        pytest.param(False, True, KeepWarm, id="the account allows as many"),
        pytest.param(True, True, ReleaseWarm, id="somebody waits for more than it allows"),
        pytest.param(True, False, ReleaseWarm, id="nobody is seen to wait: a refused job backs off"),
    ],
)
def test_a_plan_reads_the_limits_off_what_the_account_refused(
    *, refused: bool, asks: bool, expected: type[Action]
) -> None:
    idle = warm("w", left=1)
    (capacity,) = of(1)
    limits = {capacity: AccountLimit(limit=1, until=NOON + minutes(5), refusals=1)} if refused else {}
    jobs = [waiting("other", n=1)] if asks else []
    world = snapshot(*jobs, warm=of(1), warm_pools=(idle,), account_limits=limits)
    found = plan(world, replace(pool(2), warm_pool=RETAINING), now=NOON).actions
    assert [type(one) for one in found if isinstance(one, KeepWarm | ReleaseWarm)] == [expected]


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(warm("w", left=0), id="its time is over"),
        pytest.param(warm("w", releasing=True), id="SageMaker was told to give it up"),
    ],
)
def test_what_became_of_a_warm_pool_is_asked_of_sagemaker(one: WarmPool) -> None:
    assert upkeep(one, wanted=True) == SettleWarm(warm_pool=one)


def test_a_warm_pool_that_is_taken_needs_no_upkeep_and_one_whose_room_is_needed_goes() -> None:
    keeper = Upkeep(
        rules=RULES,
        reused=frozenset({"taken"}),
        released=frozenset({"needed"}),
        wanted=frozenset({"k"}),
        limited=frozenset(),
        now=NOON,
    )
    assert keeper.actions([warm("taken", left=0), warm("needed")]) == [
        ReleaseWarm(warm_pool=warm("needed"), because="its capacity is needed")
    ]


def test_the_keys_wanted_are_those_of_every_shape() -> None:
    jobs = [
        waiting("a", shapes=(shape(key="x"), shape(key="y"))),
        waiting("b"),
        waiting("c", shapes=(shape(key="x"),)),
    ]
    assert keys_wanted(jobs) == {"x", "y"}


KEYED = (shape(key="k"),)


@pytest.mark.parametrize(
    ("waits", "kept"),
    [
        pytest.param(
            {"due": (waiting("d", shapes=KEYED),)}, True, id="for a job whose back-off is just over"
        ),
        pytest.param(
            {"waiting": (waiting("d", shapes=KEYED),), "paused": True}, True, id="while starts are paused"
        ),
        pytest.param(
            {"waiting": (waiting("d", shapes=KEYED),)}, False, id="not for a job that starts elsewhere"
        ),
    ],
)
def test_whom_a_warm_pool_is_kept_for(waits: dict[str, Any], *, kept: bool) -> None:
    near = warm("w", left=1)
    world = replace(snapshot(warm=of(1), warm_pools=(near,)), **waits)
    actions = plan(world, replace(pool(2), warm_pool=RULES), now=NOON).actions
    assert (KeepWarm(warm_pool=near, until=NOON + minutes(10)) in actions) is kept


def test_a_job_that_can_use_a_warm_pool_does_not_wait_for_the_one_ahead_of_it() -> None:
    """Its instances are not free for anybody else unless they are given up."""
    live = running("r", priority=9, state=JobState.RUNNING)
    keyed = waiting("keyed", shapes=KEYED)
    world = snapshot(live, keyed, warm=of(1), warm_pools=(warm("w"),))
    start = starts(world, replace(pool(2), warm_pool=RULES))["keyed"]
    assert (start.most_used, start.warm) == (of(1), of(1))
