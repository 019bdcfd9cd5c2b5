"""Training plans of the policy document, and every way in which they are refused."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from trainmaster.core.errors import FieldError, PolicyViolationError
from trainmaster.core.policy import parse_policy
from trainmaster.core.policy.training_plans import plans_elsewhere

P5 = "ml.p5.48xlarge"
SPRING = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/spring"
AUTUMN = SPRING.replace("spring", "autumn")


def document(*plans: object, **more: Any) -> dict[str, Any]:
    pool = {"name": "p5", "capacity": {P5: 0}, "plans": list(plans)}
    return {"pools": [pool], "teams": [{"name": "vision", "roles": "any"}], **more}


def errors_of(written: object) -> list[tuple[str, str, str]]:
    with pytest.raises(PolicyViolationError) as caught:
        parse_policy(written)
    return [(error.field, error.message, error.hint) for error in caught.value.errors]


def test_a_plan_has_a_name_teams_and_a_drain() -> None:
    written = document(
        {"arn": SPRING, "teams": ["vision"], "fee_usd": 41_000.5}, {"arn": AUTUMN, "drain": "6h"}
    )
    spring, autumn = parse_policy(written).pools[0].plans
    assert (spring.name, spring.drain, spring.fee_usd) == (
        "spring",
        timedelta(minutes=10),
        Decimal("41000.5"),
    )
    assert [spring.is_open_to(team) for team in ("vision", "audio")] == [True, False]
    assert (autumn.name, autumn.drain, autumn.is_open_to("audio")) == ("autumn", timedelta(hours=6), True)


@pytest.mark.parametrize(
    "arn",
    [
        "spring",
        SPRING.replace("training-plan", "training-job"),
        SPRING.replace("111122223333", "1111"),
        f"{SPRING}/part",
        SPRING.replace("spring", "spr+ing"),
        SPRING.replace("spring", "*"),
        SPRING.replace("sagemaker", "s3"),
        7,
    ],
)
def test_what_is_no_arn_of_a_plan_is_refused_with_an_example(arn: object) -> None:
    ((field, message, hint),) = errors_of(document({"arn": arn}))
    assert field == "pools[0].plans[0].arn"
    assert message.startswith("is not the ARN of a training plan: ")
    assert hint == "write arn:aws:sagemaker:us-east-1:111122223333:training-plan/NAME"


@pytest.mark.parametrize(
    ("plan", "field", "message"),
    [
        pytest.param({}, "arn", "is missing", id="no ARN"),
        pytest.param(
            {"arn": SPRING, "teams": ["visoin"]},
            "teams.visoin",
            'there is no team "visoin"',
            id="no such team",
        ),
        pytest.param({"arn": SPRING, "teams": []}, "teams", "names no team", id="no teams"),
        pytest.param(
            {"arn": SPRING, "drain": "4m"}, "drain", 'must be between 5m and 6h, not "4m"', id="short"
        ),
        pytest.param(
            {"arn": SPRING, "drain": "7h"}, "drain", 'must be between 5m and 6h, not "7h"', id="long"
        ),
        pytest.param({"arn": SPRING, "drain": 600}, "drain", "durations need a unit", id="no unit"),
        pytest.param({"arn": SPRING, "drian": "5m"}, "drian", "unknown key", id="unknown key"),
    ],
)
def test_a_mistake_names_its_field(plan: object, field: str, message: str) -> None:
    ((at, said, hint),) = errors_of(document(plan))
    assert (at, said) == (f"pools[0].plans[0].{field}", message)
    assert hint


def test_a_plan_is_capacity_of_one_pool_once() -> None:
    written = document({"arn": SPRING}, {"arn": AUTUMN})
    written["pools"].append({"name": "other", "capacity": {"ml.p4d.24xlarge": 0}, "plans": [{"arn": SPRING}]})
    assert errors_of(written) == [
        (
            "pools[1].plans[0].arn",
            "is already the plan of pools[0].plans[0]: a plan is capacity of one pool, once",
            "remove one of the two",
        )
    ]


@pytest.mark.parametrize("change", [("us-east-1", "us-west-2"), ("111122223333", "444455556666")])
def test_plans_of_two_accounts_or_regions_are_refused(change: tuple[str, str]) -> None:
    other = AUTUMN.replace(*change)
    ((field, message, _),) = errors_of(document({"arn": SPRING}, {"arn": other}))
    assert field == "pools[0].plans[1].arn"
    assert message == f'is of another account or region than {SPRING}: "{other}"'


def test_more_plans_than_can_be_described_are_refused() -> None:
    many = ({"arn": f"{SPRING}-{number}"} for number in range(21))
    assert errors_of(document(*many)) == [("pools[0].plans", "has 21 plans", "write at most 20")]


@pytest.mark.parametrize(
    ("account", "region", "hint"),
    [
        pytest.param("111122223333", "us-east-1", None, id="its own"),
        pytest.param("111122223333", "", None, id="the region is not known"),
        pytest.param("111122223333", "eu-west-1", SPRING.replace("us-east-1", "eu-west-1"), id="region"),
        pytest.param("444455556666", "", SPRING.replace("111122223333", "444455556666"), id="account"),
    ],
)
def test_a_plan_of_another_account_than_the_stacks_is_named(
    account: str, region: str, hint: str | None
) -> None:
    pools = [pool.plans for pool in parse_policy(document({"arn": SPRING})).pools]
    errors: list[FieldError] = list(plans_elsewhere(pools, account=account, region=region))
    assert [(error.field, error.hint) for error in errors] == (
        [] if hint is None else [("pools[0].plans[0].arn", f"write {hint}")]
    )
