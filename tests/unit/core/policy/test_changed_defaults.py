"""Defaults that changed: what was stored keeps what it meant, and the next put says what changes."""

from datetime import timedelta
from typing import Any

import pytest
from trainmaster.core.policy import (
    DEFAULTS,
    DEFAULTS_RULE,
    EARLIER_DEFAULTS,
    Policy,
    PreemptionCost,
    WarmPool,
    defaults_that_change,
    parse_policy,
)

MINUTE = timedelta(minutes=1)
OLD_COST = PreemptionCost(enabled=False, longest_wait=None)
OLD_WARM = WarmPool(keep_alive=timedelta(), retain=timedelta(), max_idle=30 * MINUTE)
EARLIER = [EARLIER_DEFAULTS, 2]
"""Defaults from before preemptions had a price."""


def document(*pools: dict[str, Any], **keys: Any) -> dict[str, Any]:
    named = [{"name": f"p{n}", "capacity": {"ml.p5.48xlarge": 1}} | one for n, one in enumerate(pools, 1)]
    for index, one in enumerate(named):
        one["capacity"] = {f"ml.g5.{2 ** (index + 1)}xlarge": 1}
    return {"pools": named} | keys


def stored(written: dict[str, Any], defaults: int) -> Policy:
    return parse_policy(written, is_stored=True, defaults=defaults)


# ---- what was stored


@pytest.mark.parametrize("defaults", EARLIER)
@pytest.mark.parametrize(
    "pool",
    [
        pytest.param({}, id="no section"),
        pytest.param({"preemption": {}, "warm_pool": {}}, id="empty sections"),
        pytest.param({"preemption": None, "warm_pool": None}, id="sections without a value"),
        pytest.param({"preemption": {"cost": {}}}, id="an empty section in a section"),
    ],
)
def test_a_revision_written_before_keeps_every_default(pool: dict[str, Any], defaults: int) -> None:
    (found,) = stored(document(pool), defaults).pools
    assert (found.preemption.cost, found.warm_pool) == (OLD_COST, OLD_WARM)


@pytest.mark.parametrize("defaults", EARLIER)
@pytest.mark.parametrize(
    ("preemption", "expected"),
    [
        pytest.param(
            {"cost": {"enabled": True}},
            PreemptionCost(enabled=True, longest_wait=None),
            id="the price alone",
        ),
        pytest.param(
            {"cost": {"lost_work": 7}},
            PreemptionCost(enabled=False, lost_work=7, longest_wait=None),
            id="what lost work counts alone",
        ),
        pytest.param({"max_per_job": 5}, OLD_COST, id="a key beside the price"),
    ],
)
def test_what_is_not_written_of_a_price_is_what_it_was(
    preemption: dict[str, Any], expected: PreemptionCost, defaults: int
) -> None:
    (found,) = stored(document({"preemption": preemption}), defaults).pools
    assert found.preemption.cost == expected


@pytest.mark.parametrize("defaults", EARLIER)
@pytest.mark.parametrize(
    ("warm_pool", "expected"),
    [
        pytest.param({"keep_alive": "20m"}, (20, 0, 30), id="instances are kept, for waiting jobs alone"),
        pytest.param({"retain": "5m"}, (0, 5, 30), id="none are kept"),
        pytest.param({"max_idle": "5m"}, (0, 0, 5), id="a bound alone"),
    ],
)
def test_what_is_not_written_of_warm_pools_is_what_it_was(
    warm_pool: dict[str, Any], expected: tuple[int, int, int], defaults: int
) -> None:
    (found,) = stored(document({"warm_pool": warm_pool}), defaults).pools
    rules = found.warm_pool
    kept = (rules.keep_alive, rules.retain, rules.max_idle)
    assert tuple(None if length is None else length / MINUTE for length in kept) == expected


def test_a_default_that_did_not_change_is_the_same_under_all() -> None:
    then, now = (stored(document({}), defaults).pools[0] for defaults in (EARLIER_DEFAULTS, DEFAULTS))
    assert (then.order, then.limits, then.capacity_wait) == (now.order, now.limits, now.capacity_wait)
    assert then.preemption.cost.restart == now.preemption.cost.restart == 5 * MINUTE


def test_a_revision_written_today_has_a_price_and_warm_pools() -> None:
    (found,) = stored(document({}), DEFAULTS).pools
    assert found.preemption.cost.enabled
    assert found.warm_pool.keep_alive == 10 * MINUTE


# ---- what the next put says


def warned(old: dict[str, Any], new: dict[str, Any], *, defaults: int = 2) -> dict[str, str]:
    found = defaults_that_change(stored(old, defaults), parse_policy(new))
    assert all(one.rule == DEFAULTS_RULE and one.hint for one in found)
    assert len({one.field for one in found}) == len(found)
    return {one.field.removeprefix("pools[]."): one.message for one in found}


PRICE, COUNT, WARM = "preemption.cost.enabled", "preemption.max_per_job", "warm_pool.keep_alive"
BOUND = "preemption.cost.longest_wait"
RETAIN = "warm_pool.retain"
ALL = {PRICE, COUNT, WARM}


@pytest.mark.parametrize("defaults", EARLIER)
@pytest.mark.parametrize(
    ("pool", "expected"),
    [
        pytest.param({}, ALL, id="nothing is written"),
        pytest.param({"preemption": {"cost": {"enabled": False}}}, {COUNT, WARM}, id="no price"),
        pytest.param({"preemption": {"max_per_job": 3}}, {PRICE, WARM}, id="three times"),
        pytest.param({"warm_pool": {"keep_alive": "0s"}}, {PRICE, COUNT}, id="nothing warm"),
        pytest.param({"preemption": {"enabled": False}}, {WARM}, id="nobody is preempted"),
        pytest.param(
            {"preemption": {"cost": {"enabled": True}}, "warm_pool": {"keep_alive": "1m"}},
            {BOUND, COUNT, RETAIN},
            id="a price, and warm pools of which one key is not written",
        ),
        pytest.param(
            {
                "preemption": {"cost": {"enabled": True, "longest_wait": "10m"}, "max_per_job": 3},
                "warm_pool": {"keep_alive": "0s", "retain": "0s"},
            },
            set(),
            id="all is written",
        ),
    ],
)
def test_a_put_names_the_keys_that_stand_for_something_else(
    pool: dict[str, Any], expected: set[str], defaults: int
) -> None:
    assert set(warned(document(pool), document(pool), defaults=defaults)) == expected


@pytest.mark.parametrize("defaults", [3, 4])
@pytest.mark.parametrize(
    ("cost", "expected"),
    [
        pytest.param({}, {BOUND, RETAIN}, id="nothing is written"),
        pytest.param({"enabled": False}, {RETAIN}, id="no price"),
        pytest.param({"longest_wait": "1h"}, {RETAIN}, id="another bound"),
        pytest.param({"longest_wait": "off"}, {RETAIN}, id="no bound"),
    ],
)
def test_a_revision_with_a_price_has_no_bound_of_the_wait_until_the_next_put(
    cost: dict[str, Any], expected: set[str], defaults: int
) -> None:
    written = document({"preemption": {"cost": cost}})
    (found,) = stored(written, defaults).pools
    assert found.preemption.cost.longest_wait == (timedelta(hours=1) if "1h" in cost.values() else None)
    assert set(warned(written, written, defaults=defaults)) == expected


@pytest.mark.parametrize("defaults", [3, 4, 5])
@pytest.mark.parametrize(
    ("warm_pool", "kept", "expected"),
    [
        pytest.param({}, 10 * MINUTE, {RETAIN}, id="nothing is written"),
        pytest.param({"keep_alive": "20m"}, 10 * MINUTE, {RETAIN}, id="another key is written"),
        pytest.param({"retain": "10m"}, 10 * MINUTE, set(), id="it is written"),
        pytest.param({"retain": "0s"}, timedelta(), set(), id="it is written that none is kept"),
        pytest.param({"retain": "worth"}, None, set(), id="it is written that worth decides"),
        pytest.param({"keep_alive": "0s"}, 10 * MINUTE, set(), id="nothing is kept warm at all"),
    ],
)
def test_instances_are_kept_for_ten_minutes_until_the_next_put(
    warm_pool: dict[str, Any], kept: timedelta | None, expected: set[str], defaults: int
) -> None:
    written = document({"preemption": {"cost": {"longest_wait": "3m"}}, "warm_pool": warm_pool})
    (before,) = stored(written, defaults).pools
    assert before.warm_pool.retain == kept
    messages = warned(written, written, defaults=defaults)
    assert set(messages) == expected
    assert all("kept only as long as that is likely to pay" in message for message in messages.values())


def test_who_kept_none_for_nobody_is_told_that_some_are_kept() -> None:
    written = document({"warm_pool": {"keep_alive": "20m"}})
    message = warned(written, written)[RETAIN]
    assert "idle instances are kept although no waiting job can use them" in message


def test_pools_are_named_once_for_each_key() -> None:
    pools: tuple[dict[str, Any], ...] = ({}, {"warm_pool": {"keep_alive": "0s"}}, {})
    messages = warned(document(*pools), document(*pools))
    assert messages["preemption.cost.enabled"].startswith("is missing in pool p1 and 2 more: a preemption")
    assert messages["warm_pool.keep_alive"].startswith("is missing in pool p1 and 1 more: instances are kept")


def test_only_pools_that_both_have_can_change() -> None:
    assert warned(document({}), document({"name": "new"})) == {}
    messages = warned(document({}), document({"name": "new"}, {"name": "p1"}))
    assert messages["warm_pool.keep_alive"].startswith("is missing in pool p1: ")


def test_a_revision_written_today_changes_nothing_any_more() -> None:
    assert warned(document({}), document({}), defaults=DEFAULTS) == {}


def test_rules_of_teams_change_only_for_revisions_from_before_them() -> None:
    teams = [{"name": "vision", "principals": ["arn:aws:iam::111122223333:role/vision"], "roles": "any"}]
    old = document({}, teams=teams)
    assert set(warned(old, old, defaults=2)) == ALL
    guards = {"rules.remote_debug", "rules.session_chaining"}
    assert set(warned(old, old, defaults=EARLIER_DEFAULTS)) == ALL | guards


# ---- a shorter bound cuts the defaults


@pytest.mark.parametrize(
    "warm_pool", [{"max_idle": "5m"}, {"keep_alive": "0s"}, {"keep_alive": "0s", "max_idle": "1m"}]
)
def test_defaults_of_warm_pools_need_no_advice(warm_pool: dict[str, Any]) -> None:
    assert parse_policy(document({"warm_pool": warm_pool})).warnings == ()
