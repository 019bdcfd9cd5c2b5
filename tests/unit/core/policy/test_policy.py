"""The policy document: its defaults, its warnings, and every mistake with its path."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from trainmaster.core.errors import FieldError, PolicyViolationError
from trainmaster.core.policy import (
    Aging,
    Limits,
    Order,
    PoolPolicy,
    Preemption,
    PreemptionCost,
    TeamPolicy,
    WarmPool,
    parse_policy,
)

P5 = "ml.p5.48xlarge"
G5 = "ml.g5.12xlarge"


def pool(**keys: Any) -> dict[str, Any]:
    return {"pools": [{"name": "p5", "capacity": {P5: 2}} | keys]}


def errors_of(document: object) -> tuple[FieldError, ...]:
    with pytest.raises(PolicyViolationError) as caught:
        parse_policy(document)
    return caught.value.errors


def fields_of(document: object) -> list[str]:
    return [error.field for error in errors_of(document)]


def test_the_empty_document_is_valid_and_has_nothing() -> None:
    policy = parse_policy({})
    assert (policy.pools, policy.teams, policy.admins, policy.warnings) == ((), (), (), ())


def test_a_pool_with_capacity_alone_has_the_defaults() -> None:
    (found,) = parse_policy(pool()).pools
    assert found == PoolPolicy(
        name="p5",
        capacity={P5: 2},
        spot_capacity={},
        order=Order(aging=Aging(per=timedelta(hours=24), add=1), backfill=True, shortest_first=False),
        preemption=Preemption(
            enabled=True,
            min_priority_gap=1,
            min_runtime=timedelta(),
            preempt_delay=timedelta(),
            max_per_job=100,
            needs_checkpoint=False,
            cost=PreemptionCost(
                enabled=True,
                double_every=100,
                lost_work=5,
                restart=timedelta(minutes=5),
                small_loss=timedelta(minutes=5),
                unsaved=timedelta(hours=24),
                longest_wait=timedelta(minutes=3),
            ),
        ),
        capacity_wait=timedelta(minutes=30),
        quotas={},
        warm_pool=WarmPool(keep_alive=timedelta(minutes=10), retain=None, max_idle=timedelta(minutes=30)),
        limits=Limits(max_waiting=5000, max_submissions_per_minute=100),
    )


def test_every_key_that_is_acted_on_is_read() -> None:
    policy = parse_policy(
        {
            "version": 1,
            "pools": [
                {
                    "name": "p5",
                    "capacity": {P5: 2},
                    "spot_capacity": {G5: 8},
                    "order": {"aging": {"per": "12h", "add": 2}, "backfill": False, "shortest_first": True},
                    "preemption": {
                        "enabled": False,
                        "min_priority_gap": 10,
                        "min_runtime": "15m",
                        "preempt_delay": "300s",
                        "max_per_job": 5,
                        "needs_checkpoint": True,
                    },
                    "capacity_wait": "1d",
                }
            ],
            "teams": [
                {
                    "name": "vision",
                    "principals": ["arn:aws:iam::111122223333:role/vision-*"],
                    "max_priority": 500,
                }
            ],
            "admins": ["arn:aws-cn:iam::111122223333:user/ops/ada"],
        }
    )
    (found,) = policy.pools
    assert found.spot_capacity == {G5: 8}
    assert found.order == Order(
        aging=Aging(per=timedelta(hours=12), add=2), backfill=False, shortest_first=True
    )
    assert found.preemption == Preemption(
        enabled=False,
        min_priority_gap=10,
        min_runtime=timedelta(minutes=15),
        preempt_delay=timedelta(minutes=5),
        max_per_job=5,
        needs_checkpoint=True,
    )
    assert found.capacity_wait == timedelta(days=1)
    (team,) = policy.teams
    assert (team.name, team.max_priority, team.principals[0].name) == ("vision", 500, "vision-*")
    assert policy.admins[0].path == "ops/"


@pytest.mark.parametrize("off", [None, "off", False])
def test_ageing_can_be_off(off: object) -> None:
    assert parse_policy(pool(order={"aging": off})).pools[0].order.aging is None


@pytest.mark.parametrize(
    ("document", "field"),
    [
        pytest.param({"pools": None, "teams": None, "admins": None}, None, id="a bare key is absent"),
        pytest.param(pool(order=None, preemption=None), None, id="in a pool too"),
        pytest.param(pool(preemption={"min_runtime": "0s"}), None, id="0s is a duration"),
        pytest.param(pool(capacity={P5: 0}), None, id="a type may be drained"),
        pytest.param(pool(capacity={}, spot_capacity={P5: 1}), None, id="spot alone is a capacity"),
        pytest.param(pool(spot_capacity={P5: 1}), None, id="a pool may own a type both ways"),
        pytest.param(None, "", id="null is no document"),
        pytest.param([], "", id="nor is a list"),
        pytest.param({"version": 2}, "version", id="a later version is refused"),
        pytest.param({"version": True}, "version", id="true is no version"),
        pytest.param({"version": "1"}, "version", id="nor is text"),
        pytest.param({"pools": {}}, "pools", id="pools is a list"),
        pytest.param(pool(name=""), "pools[0].name", id="a pool's name is not empty"),
        pytest.param(pool(name=None), "pools[0].name", id="a pool has a name"),
        pytest.param(pool(name="a#b"), "pools[0].name", id="a number sign would break the table's keys"),
        pytest.param(pool(name="-"), "pools[0].name", id="the pool of unmanaged jobs has no namesake"),
        pytest.param(pool(name="p" * 64), "pools[0].name", id="a name has at most 63 characters"),
        pytest.param(pool(name="p5\n"), "pools[0].name", id="a newline is no part of a name"),
        pytest.param(pool(capacity=2), "pools[0].capacity", id="capacity is by type"),
        pytest.param(pool(capacity={P5: -1}), f"pools[0].capacity.{P5}", id="capacity is not negative"),
        pytest.param(pool(capacity={P5: True}), f"pools[0].capacity.{P5}", id="true is not one"),
        pytest.param(pool(capacity={P5: 2.0}), f"pools[0].capacity.{P5}", id="nor is 2.0 two"),
        pytest.param(pool(capacity={P5: None}), f"pools[0].capacity.{P5}", id="a type has a number"),
        pytest.param(pool(capacity={P5: 10**5000}), f"pools[0].capacity.{P5}", id="not an absurd one"),
        pytest.param(pool(capacity={"p5.48xlarge": 1}), "pools[0].capacity.p5.48xlarge", id="an EC2 type"),
        pytest.param(pool(capacity={"ML.p5.48xlarge": 1}), "pools[0].capacity.ML.p5.48xlarge", id="case"),
        pytest.param(pool(capacity={"ml.g5.*": 1}), "pools[0].capacity.ml.g5.*", id="no wildcards here"),
        pytest.param(pool(order={"aging": True}), "pools[0].order.aging", id="ageing is a rate or off"),
        pytest.param(
            pool(order={"aging": {"per": "0s"}}), "pools[0].order.aging.per", id="an ageing rate is finite"
        ),
        pytest.param(
            pool(order={"aging": {"add": 0}}), "pools[0].order.aging.add", id="an ageing rate is not zero"
        ),
        pytest.param(pool(order={"backfill": "yes"}), "pools[0].order.backfill", id="yes is no flag"),
        pytest.param(
            pool(preemption={"min_priority_gap": 0}),
            "pools[0].preemption.min_priority_gap",
            id="equals never preempt each other",
        ),
        pytest.param(
            pool(preemption={"max_per_job": -1}), "pools[0].preemption.max_per_job", id="no negative limits"
        ),
        pytest.param(pool(capacity_wait="29m"), "pools[0].capacity_wait", id="less than SageMaker takes"),
        pytest.param(pool(capacity_wait="29d"), "pools[0].capacity_wait", id="more than SageMaker takes"),
        pytest.param(pool(quotas=[]), "pools[0].quotas", id="quotas are by team"),
        pytest.param(
            {"teams": [{"name": "a", "roles": {}}]}, "teams[0].roles", id="a kept list is a list"
        ),
        pytest.param({"teams": [{}]}, "teams[0].name", id="a team has a name"),
        pytest.param({"teams": [{"name": "a#b"}]}, "teams[0].name", id="a team's name is part of keys too"),
        pytest.param(
            {"teams": [{"name": "a", "max_priority": 1001}]},
            "teams[0].max_priority",
            id="the highest priority is 1000",
        ),
        pytest.param(
            {"teams": [{"name": "a", "principals": "arn"}]}, "teams[0].principals", id="principals is a list"
        ),
        pytest.param({"admins": [7]}, "admins[0]", id="a principal is text"),
        pytest.param({"rules": []}, "rules", id="a kept mapping is a mapping"),
    ],
)  # fmt: skip
def test_values(document: object, field: str | None) -> None:
    if field is None:
        parse_policy(document)
    else:
        assert fields_of(document) == [field]


@pytest.mark.parametrize(
    ("principal", "is_good"),
    [
        ("arn:aws:iam::111122223333:role/vision", True),
        ("arn:aws:iam::111122223333:role/team/vision/lead-*", True),
        ("arn:aws-us-gov:iam::111122223333:user/ada", True),
        ("arn:aws:iam::111122223333:role/*", True),
        ("arn:aws:iam::*:role/vision", False),
        ("arn:aws:iam::11112222333:role/vision", False),
        ("arn:aws:iam::111122223333:role/te*m/vision", False),
        ("arn:aws:iam::111122223333:*/vision", False),
        ("arn:aws:iam::111122223333:role/", False),
        ("arn:aws:iam::111122223333:root", False),
        ("arn:aws:iam::111122223333:group/vision", False),
        ("arn:aws:sts::111122223333:assumed-role/vision/s", False),
        ("arn:aws:iam::111122223333:role/vision\n", False),
        ("arn:aws:iam::111122223333:role/[ab]", False),
        ("*", False),
    ],
)
def test_a_principal_is_a_role_or_user_of_one_account(principal: str, *, is_good: bool) -> None:
    document = {"teams": [{"name": "a", "principals": [principal]}]}
    if is_good:
        parse_policy(document)
    else:
        assert fields_of(document) == ["teams[0].principals[0]"]


@pytest.mark.parametrize("bare", [0, 30, 1.5])
def test_a_bare_number_is_told_that_durations_need_a_unit(bare: float) -> None:
    (error,) = errors_of(pool(preemption={"min_runtime": bare}))
    assert error.field == "pools[0].preemption.min_runtime"
    assert error.message == "durations need a unit"
    assert "30s" in error.hint


@pytest.mark.parametrize(
    "text",
    ["", "30", "m", "-5m", "1.5h", "1h30m", "5 m", "5M", "5m\n", "٥m", "9999999999s", "99999d", True, [], {}],  # noqa: RUF001
)
def test_other_texts_are_no_durations(text: object) -> None:
    assert fields_of(pool(preemption={"min_runtime": text})) == ["pools[0].preemption.min_runtime"]


def test_an_unknown_key_is_answered_with_the_nearest_one() -> None:
    (error,) = errors_of(pool(preemption={"min_runtme": "5m"}))
    assert error.field == "pools[0].preemption.min_runtme"
    assert error.message == "unknown key"
    assert error.hint == "did you mean min_runtime?"


def test_an_unknown_key_near_nothing_is_answered_with_the_known_ones() -> None:
    (error,) = errors_of({"teams": [{"name": "a", "zzz": 1}]})
    assert error.hint.startswith("known keys: name, principals, max_priority")


def test_a_key_that_is_no_plain_word_is_quoted_and_cut() -> None:
    errors = errors_of({"x\n\u202e": 1, "k" * 100: 1})
    assert [error.field for error in errors] == ['["x\\n\\u202e"]', f'["{"k" * 64}..."]']


def test_every_mistake_is_reported_at_once() -> None:
    document = {
        "version": 3,
        "pools": [{"capacity": {P5: -1}, "capacity_wait": 30}, {"name": "b", "order": {"agin": {}}}],
        "admins": ["me"],
        "pool": [],
    }
    assert fields_of(document) == [
        "version",
        "pools[0].name",
        f"pools[0].capacity.{P5}",
        "pools[0].capacity_wait",
        "pools[1].order.agin",
        "admins[0]",
        "pool",
    ]


def test_every_error_says_what_to_do() -> None:
    document = {"version": 0, "pools": [{"name": 1, "capacity": {"x": 1}}], "teams": 1, "admins": [1], "x": 1}
    assert all(error.hint and error.message for error in errors_of(document))


def test_a_pool_is_a_mapping() -> None:
    assert fields_of({"pools": ["p5"]}) == ["pools[0]"]


def test_there_are_at_most_500_pools() -> None:
    pools = [{"name": f"p{number}"} for number in range(501)]
    parse_policy({"pools": pools[:500]})
    assert fields_of({"pools": pools}) == ["pools"]


def test_two_pools_of_one_name_are_refused() -> None:
    assert fields_of({"pools": [{"name": "a"}, {"name": "b"}, {"name": "a"}]}) == ["pools[2].name"]


def test_two_teams_of_one_name_are_refused() -> None:
    assert fields_of({"teams": [{"name": "a"}, {"name": "a"}]}) == ["teams[1].name"]


@pytest.mark.parametrize("key", ["capacity", "spot_capacity"])
def test_a_type_belongs_to_exactly_one_pool(key: str) -> None:
    document = pool()
    document["pools"].append({"name": "other", key: {P5: 1}})
    (error,) = errors_of(document)
    assert error.field == f"pools[1].{key}.{P5}"
    assert error.message == "already belongs to pools[0]"


def test_a_wildcard_behind_a_role_path_is_warned_of() -> None:
    policy = parse_policy({"admins": ["arn:aws:iam::111122223333:role/team/*"]})
    assert [warning.field for warning in policy.warnings] == ["admins[0]"]


def test_the_document_comes_back_as_it_was_written_and_means_the_same() -> None:
    document = pool(order={"aging": "off"}, capacity_wait="3600s")
    policy = parse_policy(document)
    assert policy.to_document() == document
    assert parse_policy(policy.to_document()) == policy


def test_changing_what_came_back_does_not_change_the_policy() -> None:
    policy = parse_policy(pool())
    policy.to_document()["pools"].clear()
    assert policy.to_document() == pool()


TWO_POOLS = parse_policy(
    {
        "pools": [
            {"name": "p5", "capacity": {P5: 2}},
            {"name": "g5", "capacity": {G5: 1}, "spot_capacity": {"ml.g5.4xlarge": 1}},
        ],
        "teams": [{"name": "vision"}],
    }
)


@pytest.mark.parametrize(
    ("types", "owner"),
    [
        pytest.param([P5], "p5", id="a type has its pool"),
        pytest.param([G5, "ml.g5.4xlarge"], "g5", id="on-demand and spot types of one pool"),
        pytest.param([P5, G5], None, id="types of two pools have none"),
        pytest.param([P5, "ml.m5.large"], None, id="a type of no pool"),
        pytest.param([], None, id="no types, no pool"),
    ],
)
def test_pool_of(types: list[str], owner: str | None) -> None:
    found = TWO_POOLS.pool_of(types)
    assert (found.name if found else None) == owner


def test_pools_and_teams_are_found_by_name() -> None:
    assert TWO_POOLS.pool("g5") is TWO_POOLS.pools[1]
    assert TWO_POOLS.pool("none") is None
    assert TWO_POOLS.team("vision") == TeamPolicy(name="vision")
    assert TWO_POOLS.team("none") is None


@pytest.mark.parametrize(
    ("aging", "priority", "boost_ms"),
    [
        pytest.param({"per": "24h", "add": 1}, 3, 3 * 86_400_000, id="a point is worth per/add"),
        pytest.param({"per": "1s", "add": 3}, 1, 333, id="whole milliseconds"),
        pytest.param({"per": "24h"}, 0, 0, id="no priority, no boost"),
        pytest.param("off", 1, 36_525 * 86_400_000, id="without ageing a step is a hundred years"),
    ],
)
def test_boost(aging: object, priority: int, boost_ms: int) -> None:
    assert parse_policy(pool(order={"aging": aging})).pools[0].boost_ms(priority) == boost_ms


@pytest.mark.parametrize(
    ("order", "key"),
    [
        pytest.param({}, "age-86400000", id="the default"),
        pytest.param(
            {"aging": {"per": "48h", "add": 2}}, "age-86400000", id="the same rate, written otherwise"
        ),
        pytest.param({"aging": {"per": "24h", "add": 7}}, "age-86400000/7", id="a rate of its own"),
        pytest.param({"aging": "off"}, "age-3155760000000", id="no ageing"),
        pytest.param({"shortest_first": True}, "length-left-86400000", id="by length"),
        pytest.param({"backfill": False}, "age-86400000", id="backfill scores nobody again"),
    ],
)
def test_the_key_of_an_order_changes_with_the_scores(order: dict[str, Any], key: str) -> None:
    assert parse_policy(pool(order=order)).pools[0].order_key == key


RATES = st.builds(
    Aging, per=st.integers(1, 10**6).map(lambda s: timedelta(seconds=s)), add=st.integers(1, 1000)
)


@given(RATES, RATES)
@example(Aging(per=timedelta(seconds=2), add=999), Aging(per=timedelta(seconds=2), add=1000))
@example(Aging(per=timedelta(seconds=2), add=500), Aging(per=timedelta(seconds=4), add=1000))
def test_two_orders_have_one_key_exactly_when_they_score_every_priority_alike(
    one: Aging, other: Aging
) -> None:
    first, second = (PoolPolicy(name="p", capacity={}, order=Order(aging=aging)) for aging in (one, other))
    alike = all(first.boost_ms(priority) == second.boost_ms(priority) for priority in range(1001))
    assert (first.order_key == second.order_key) is alike


def test_a_pool_without_instance_types_gets_a_warning() -> None:
    (warning,) = parse_policy({"pools": [{"name": "p5"}]}).warnings
    assert (warning.field, warning.message) == ("pools[0]", "has no instance types: no job can wait in it")


def test_the_orders_that_were_kept_for_later_are_acted_on_without_a_warning() -> None:
    assert parse_policy(pool(order={"backfill": True, "shortest_first": True})).warnings == ()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(
    ["version", "pools", "teams", "admins", "rules", "name", "capacity", "order", "preemption"]
)
DOCUMENT = st.recursive(
    JSON,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(DOCUMENT)
def test_any_json_is_either_a_policy_or_a_list_of_errors(document: object) -> None:
    try:
        parse_policy(document)
    except PolicyViolationError as error:
        assert error.errors  # noqa: PT017  most generated documents are bad, some are not
