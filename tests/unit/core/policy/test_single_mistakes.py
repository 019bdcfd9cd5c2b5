"""One mistake in a policy is one message: nothing is said that only follows from it."""

import copy
from typing import Any

import pytest
from trainmaster.core.errors import FieldError, PolicyViolationError
from trainmaster.core.policy import parse_policy

BASE: dict[str, Any] = {
    "pools": [
        {
            "name": "g5",
            "capacity": {"ml.g5.xlarge": 2},
            "quotas": {"vision": 1, "language": 1},
            "preemption": {"min_runtime": "10m"},
        },
        {"name": "p4", "capacity": {"ml.p4d.24xlarge": 1}},
    ],
    "teams": [
        {"name": "vision", "budget": {"usd_per_month": 1000, "at_limit": "wait"}, "roles": "any"},
        {"name": "language", "roles": "any"},
    ],
}


def mistakes(change: Any) -> list[FieldError]:
    document = copy.deepcopy(BASE)
    change(document)
    with pytest.raises(PolicyViolationError) as caught:
        parse_policy(document)
    return list(caught.value.errors)


def pool(**changed: Any) -> Any:
    return lambda document: document["pools"][0].update(changed)


def renamed(section: Any, old: str, new: str) -> Any:
    return lambda document: section(document).update({new: section(document).pop(old)})


def first_pool(document: Any) -> Any:
    return document["pools"][0]


def first_team(document: Any) -> Any:
    return document["teams"][0]


@pytest.mark.parametrize(
    ("change", "field", "hint"),
    [
        pytest.param(
            renamed(first_pool, "capacity", "capcity"),
            "pools[0].capcity",
            "did you mean capacity?",
            id="typo",
        ),
        pytest.param(
            pool(capacity={"ml.g5.xlarge": -2}),
            "pools[0].capacity.ml.g5.xlarge",
            "write a number",
            id="negative",
        ),
        pytest.param(
            pool(capacity={"ml.g5.xlarge": "1e3"}), "pools[0].capacity.ml.g5.xlarge", "write 1000", id="1e3"
        ),
        pytest.param(
            pool(capacity={"ml.g5.xlarge": "2"}),
            "pools[0].capacity.ml.g5.xlarge",
            "write 2 without quotes",
            id="quoted",
        ),
        pytest.param(
            pool(capacity={"ml.g5.xlarge": "10 GB"}),
            "pools[0].capacity.ml.g5.xlarge",
            "write a number",
            id="10 GB",
        ),
        pytest.param(
            pool(capacity=[{"ml.g5.xlarge": 2}]), "pools[0].capacity", "write {ml.g5.xlarge: 2}", id="list"
        ),
        pytest.param(
            pool(capacity=["ml.g5.xlarge: 2", "ml.g5.2xlarge=1"]),
            "pools[0].capacity",
            "write {ml.g5.xlarge: 2, ml.g5.2xlarge: 1}",
            id="list of texts",
        ),
        pytest.param(pool(capacity=2), "pools[0].capacity", "write keys and values", id="number"),
        pytest.param(
            pool(capacity={"g5": 2}), "pools[0].capacity.g5", "write it as SageMaker does", id="no type"
        ),
        pytest.param(
            pool(quotas={"vision": "50%"}),
            "pools[0].quotas.vision",
            "write 1, or {nominal: 1}",
            id="percent",
        ),
        pytest.param(
            pool(quotas={"vision": {"nominal": "50%"}}),
            "pools[0].quotas.vision.nominal",
            "write 1, or {TYPE: COUNT}",
            id="nominal in percent",
        ),
        pytest.param(
            renamed(first_team, "name", "nmae"), "teams[0].nmae", "did you mean name?", id="name of a team"
        ),
        pytest.param(
            lambda document: first_team(document).update(name="not a name!"),
            "teams[0].name",
            "1 to 63",
            id="bad name",
        ),
        pytest.param(
            renamed(lambda document: document, "teams", "taems"), "taems", "did you mean teams?", id="teams"
        ),
        pytest.param(
            lambda document: first_team(document)["budget"].update(usd_per_month="1,000"),
            "teams[0].budget.usd_per_month",
            "write 1000 without a comma",
            id="comma",
        ),
        pytest.param(
            renamed(lambda document: first_team(document)["budget"], "usd_per_month", "usd_per_mnth"),
            "teams[0].budget.usd_per_mnth",
            "did you mean usd_per_month?",
            id="needed key",
        ),
        pytest.param(
            lambda document: document["pools"].append("p5"), "pools[2]", "write keys and values", id="a word"
        ),
        pytest.param(
            lambda document: document.update(rules={"max_instances": {"mode": "audit", "vlaue": 3}}),
            "rules.max_instances.vlaue",
            "did you mean value?",
            id="a rule",
        ),
        pytest.param(
            lambda document: document.update(idle={"for": "7x", "period": "5m"}),
            "idle.for",
            "write a whole number",
            id="idle",
        ),
        pytest.param(
            pool(warm_pool={"retain": "2h", "max_idle": "1 h"}),
            "pools[0].warm_pool.max_idle",
            "write a whole number",
            id="warm pool",
        ),
    ],
)
def test_C16_a_mistake_is_said_once_with_what_to_write(change: Any, field: str, hint: str) -> None:
    (only,) = mistakes(change)
    assert (only.field, only.hint[: len(hint)]) == (field, hint)


def test_C16_two_mistakes_are_both_said() -> None:
    def change(document: Any) -> None:
        first_pool(document)["quotas"] = {"vision": -1, "languge": 1}

    assert [one.field for one in mistakes(change)] == ["pools[0].quotas.vision", "pools[0].quotas.languge"]


def test_C16_a_sum_is_still_refused_where_the_capacity_could_be_read() -> None:
    (only,) = mistakes(pool(quotas={"vision": 2, "language": 1}, limits={"max_waiting": 5}))
    assert "add up to 3, the pool has 2" in only.message


@pytest.mark.parametrize(
    ("change", "field", "hint"),
    [
        (
            lambda document: document.update(quotas=first_pool(document).pop("quotas")),
            "quotas",
            "it belongs in pools: indent it like the keys there",
        ),
        (pool(min_runtime="10m"), "pools[0].min_runtime", "it belongs in preemption: indent it like the"),
        (
            pool(preemption={"limits": {}}),
            "pools[0].preemption.limits",
            "it belongs further out: indent it less",
        ),
    ],
)
def test_C16_a_key_of_another_section_is_named_with_its_place(change: Any, field: str, hint: str) -> None:
    (only,) = mistakes(change)
    assert (only.field, only.hint[: len(hint)]) == (field, hint)


def test_C16_an_unknown_instance_type_is_a_warning_with_the_nearest() -> None:
    document = copy.deepcopy(BASE)
    document["pools"][1]["capacity"] = {"ml.p4d.42xlarge": 1}
    document["pools"][1]["spot_capacity"] = {"ml.g5.xlarg": 1, "ml.g5.2xlarge": 1}
    warnings = parse_policy(document).warnings
    assert [
        (one.field, one.hint) for one in warnings if "roles" not in one.field and "rules" not in one.field
    ] == [
        ("pools[1].capacity.ml.p4d.42xlarge", "did you mean ml.p4d.24xlarge?"),
        ("pools[1].spot_capacity.ml.g5.xlarg", "did you mean ml.g5.xlarge?"),
    ]


def test_C16_a_stored_policy_with_a_key_of_another_version_is_read_as_before() -> None:
    document = copy.deepcopy(BASE)
    first_pool(document)["capacitys"] = {"later": 1}
    policy = parse_policy(document, is_stored=True)
    quotas = policy.pools[0].quotas
    assert {team: dict(quota.nominal) for team, quota in quotas.items()} == {
        "vision": {"ml.g5.xlarge": 1},
        "language": {"ml.g5.xlarge": 1},
    }
