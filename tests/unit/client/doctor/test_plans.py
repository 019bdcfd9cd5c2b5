"""Training plans as doctor sees them: described, named by a pool, in use."""

from typing import Any

import pytest
from trainmaster_client.doctor import plans
from trainmaster_client.errors.troubles import Trouble

from tests.unit.client.doctor.test_watching import outcome, seen

SPRING = "arn:aws:sagemaker:eu-west-1:111122223333:training-plan/spring"
P5 = "ml.p5.48xlarge"
WINDOW = {"from": "2026-11-21T00:00:00Z", "to": "2026-11-23T00:00:00Z", "closes": "2026-11-22T12:00:00Z"}


def pool(**plan: Any) -> dict[str, Any]:
    view = {
        "arn": SPRING,
        "status": "Active",
        "instance_type": P5,
        "instances": 4,
        "used": 4,
        "window": WINDOW,
        "next": None,
        "trouble": None,
    }
    return {"name": "p5", "capacity": {P5: 2}, "plans": [view | plan]}


def bought(*summaries: dict[str, Any]) -> dict[str, Any]:
    return {"list_training_plans": {"TrainingPlanSummaries": list(summaries)}}


def summary(name: str, status: str = "Scheduled", *targets: str) -> dict[str, Any]:
    return {
        "TrainingPlanArn": SPRING.replace("spring", name),
        "Status": status,
        "TotalInstanceCount": 2,
        "TargetResources": list(targets or ("training-job",)),
    }


def test_without_plans_all_is_well() -> None:
    plain = seen({}, bought(), pools=({"name": "p5", "capacity": {P5: 2}},))
    assert [outcome(look(plain))[0] for look in (plans.described, plans.named, plans.used)] == ["ok"] * 3


def test_a_plan_that_is_described_named_and_used_is_fine() -> None:
    fine = seen({}, bought(summary("spring", "Active")), pools=(pool(),))
    assert [outcome(look(fine))[0] for look in (plans.described, plans.named, plans.used)] == ["ok"] * 3


@pytest.mark.parametrize(
    ("plan", "trouble", "said"),
    [
        ({"trouble": "AccessDenied"}, Trouble.PLAN_NOT_DESCRIBED, "spring of pool p5: AccessDenied"),
        ({"instance_type": None}, Trouble.PLAN_NOT_DESCRIBED, "spring of pool p5: not described yet"),
        ({"status": "Expired", "window": None}, Trouble.PLAN_OVER, "spring of pool p5: expired, no window"),
        ({"status": "Failed", "window": None}, Trouble.PLAN_OVER, "spring of pool p5: failed, no window"),
    ],
)
def test_a_plan_that_is_not_described_or_over_is_worth_a_warning(
    plan: dict[str, Any], trouble: Trouble, said: str
) -> None:
    finding = plans.described(seen({}, pools=(pool(**plan),)))
    assert outcome(finding) == ("warn", trouble)
    assert finding.actual.startswith(said)


def test_a_plan_between_two_windows_is_fine() -> None:
    assert outcome(plans.described(seen({}, pools=(pool(window=None, next=WINDOW),)))) == ("ok", None)


def test_a_bought_plan_that_no_pool_names_is_worth_a_warning() -> None:
    finding = plans.named(seen({}, bought(summary("spring"), summary("summer")), pools=(pool(),)))
    assert outcome(finding) == ("warn", Trouble.PLAN_NOT_NAMED)
    assert finding.actual == f"{SPRING.replace('spring', 'summer')} (2 instances, scheduled)"


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(summary("old", "Expired"), id="expired"),
        pytest.param(summary("bad", "Failed"), id="failed"),
        pytest.param(summary("cluster", "Active", "hyperpod-cluster"), id="of a HyperPod cluster"),
    ],
)
def test_plans_that_jobs_cannot_use_need_no_pool(other: dict[str, Any]) -> None:
    assert outcome(plans.named(seen({}, bought(other), pools=(pool(),)))) == ("ok", None)


def test_who_may_not_list_plans_learns_nothing_about_them() -> None:
    assert outcome(plans.named(seen({}, pools=(pool(),)))) == ("skip", None)
    assert outcome(plans.named(seen(None, bought(summary("summer"))))) == ("skip", None)


def test_idle_instances_of_an_open_window_are_worth_a_warning_with_their_hours() -> None:
    finding = plans.used(seen({}, pools=(pool(used=1),)))
    assert outcome(finding) == ("warn", Trouble.PLAN_IDLE)
    assert finding.actual == (
        f"spring: 3 of 4 {P5} unused, 36 instance-hours until it closes 2026-11-22 12:00 UTC"
    )


@pytest.mark.parametrize(
    "plan",
    [
        pytest.param({"used": 0, "window": None, "next": WINDOW}, id="no window is open"),
        pytest.param({"used": 0, "window": WINDOW | {"closes": "2026-11-21T23:00:00Z"}}, id="it has closed"),
        pytest.param({"used": 0, "window": WINDOW | {"closes": "soon"}}, id="another version's instant"),
    ],
)
def test_idle_instances_that_no_job_could_use_are_none(plan: dict[str, Any]) -> None:
    assert outcome(plans.used(seen({}, pools=(pool(**plan),)))) == ("ok", None)
