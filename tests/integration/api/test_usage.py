"""GET /usage."""

import copy
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from tests.builders import changed, claimed, seen
from tests.ends import observed
from tests.integration.api.conftest import ADA, ADMIN, BOB, BOTH, DOCUMENT, P5, Api


def spend(api: Api, name: str, *, hours: float = 1, usd_per_hour: str | None = "10", user: str = ADA) -> None:
    """A job that ran for this long, with the price that its instances had."""
    api.submit(name, user=user)
    price = None if usd_per_hour is None else Decimal(usd_per_hour)
    api.change(name, claimed(api.job(name), name, now=api.now, usd_per_hour=price, month=f"{api.now:%Y-%m}"))
    ended_at = api.now + timedelta(hours=hours)
    news = seen(name, status="Completed", secondary="Completed", training_since=api.now, ended_at=ended_at)
    change = observed(api.job(name), news, now=ended_at)
    assert change is not None
    api.store.commit([change], at=ended_at)


def with_budget(usd: int) -> dict[str, Any]:
    document = copy.deepcopy(DOCUMENT)
    document["teams"][0]["budget"] = {"usd_per_month": usd}
    document["prices"] = {P5: 10}  # an hour of it fits into the month
    return document


def test_a_month_tells_what_each_job_used_and_cost(api: Api) -> None:
    spend(api, "a", hours=2)
    spend(api, "b", hours=0.5)
    answer = api.get("/usage")
    assert answer.status == 200
    assert (answer.json["team"], answer.json["month"]) == ("vision", "2026-11")
    assert [(job["name"], job["instance_hours"], job["usd"]) for job in answer.json["jobs"]] == [
        ("a", 2.0, 20.0),
        ("b", 0.5, 5.0),
    ]
    assert answer.json["jobs"][0]["by"] == {
        "productive": 20.0,
        "unknown": 0.0,
        "preemption": 0.0,
        "failures": 0.0,
        "idle": 0.0,
        "warm_pool": 0.0,
        "startup": 0.0,
    }
    assert answer.json["total"]["usd"] == 25.0
    assert answer.json["budget"] is None
    assert answer.json["running"] == {"jobs": 0, "usd": 0.0, "known_usd": 0.0}


def test_C19_what_runs_is_said_beside_what_was_spent(api: Api) -> None:
    """Its bill comes when it ends: until then "spent" alone would leave it out."""
    spend(api, "a", hours=2)
    api.submit("b")
    month = f"{api.now:%Y-%m}"
    price = Decimal(10)
    api.change(
        "b", claimed(api.job("b"), "b", now=api.now - timedelta(hours=3), usd_per_hour=price, month=month)
    )
    expected = {"jobs": 1, "usd": 30.0, "known_usd": 30.0}
    assert api.get("/usage").json["running"] == expected
    assert api.get("/usage", group_by="user").json["running"] == expected
    assert api.get("/usage", month="2026-10").json["running"]["jobs"] == 0


@pytest.mark.parametrize(
    ("usd", "warning"), [pytest.param(25, True, id="80 % spent"), pytest.param(26, False, id="less")]
)
def test_a_budget_is_shown_with_what_is_spent_and_reserved(api: Api, usd: int, warning: bool) -> None:  # noqa: FBT001
    api.call("PUT", "/policy", with_budget(usd), user=ADMIN)
    spend(api, "a", hours=2)
    api.submit("b")
    api.change("b", claimed(api.job("b"), "b", now=api.now, reserved_cents=350, month="2026-11"))
    assert api.get("/usage").json["budget"] == {
        "limit": float(usd),
        "spent": 20.0,
        "reserved": 3.5,
        "warning": warning,
    }


def test_a_price_that_nobody_knows_is_no_price_of_nothing(api: Api) -> None:
    spend(api, "a", usd_per_hour=None)
    assert api.get("/usage").json["jobs"][0]["usd"] is None
    view = api.get("/jobs/a").json
    assert (view["cost_usd"], view["cost_is_estimate"]) == (None, False)


def test_a_month_may_be_chosen(api: Api) -> None:
    spend(api, "a")
    assert api.get("/usage", month="2026-10").json["jobs"] == []
    assert [job["name"] for job in api.get("/usage", month="2026-11").json["jobs"]] == ["a"]


@pytest.mark.parametrize("month", ["2026-13", "2026-00", "2026-1", "november", "2026-11-01", "\u0662026-11"])
def test_what_is_no_month_is_400(api: Api, month: str) -> None:
    answer = api.get("/usage", month=month)
    assert (answer.status, answer.fields) == (400, ["query.month"])


def test_another_teams_usage_is_forbidden_and_an_admin_sees_it(api: Api) -> None:
    spend(api, "a")
    answer = api.get("/usage", user=BOB, team="vision")
    assert (answer.status, answer.fields) == (403, ["query.team"])
    assert [job["name"] for job in api.get("/usage", user=ADMIN, team="vision").json["jobs"]] == ["a"]


@pytest.mark.parametrize("user", [BOTH, ADMIN])
def test_who_has_not_exactly_one_team_says_which(api: Api, user: str) -> None:
    answer = api.get("/usage", user=user)
    assert (answer.status, answer.fields) == (400, ["query.team"])
    assert answer.json["errors"][0]["hint"] == "use one of: vision, speech"
    assert api.get("/usage", user=user, team="speech").json["team"] == "speech"


@pytest.mark.parametrize("user", [ADA, ADMIN])
def test_a_team_that_never_was_is_an_error_that_says_the_nearest(api: Api, user: str) -> None:
    answer = api.get("/usage", user=user, team="vison")
    assert answer.fields == ["query.team"]
    assert answer.json["errors"][0]["hint"].startswith("did you mean vision?")


def test_a_team_that_is_gone_keeps_its_ledger(api: Api) -> None:
    spend(api, "a")
    api.call("PUT", "/policy", {**DOCUMENT, "teams": DOCUMENT["teams"][1:]}, user=ADMIN)
    assert [job["name"] for job in api.get("/usage", user=ADMIN, team="vision").json["jobs"]] == ["a"]


def test_a_live_job_costs_what_its_instances_cost_since_the_claim(api: Api) -> None:
    spend(api, "a", hours=2)
    api.submit("b")
    api.change("b", claimed(api.job("b"), "b", now=api.now, usd_per_hour=Decimal("4.50")))
    api.now += timedelta(minutes=20)
    view = api.get("/jobs/b").json
    assert (view["cost_usd"], view["cost_is_estimate"]) == (1.5, True)
    done = api.get("/jobs/a").json
    assert (done["cost_usd"], done["cost_is_estimate"]) == (20.0, False)


def test_a_bill_of_attempts_in_the_past_is_part_of_the_cost(api: Api) -> None:
    api.submit("a")
    job = changed(api.job("a"), cents=250)
    api.change("a", job)
    assert api.get("/jobs/a").json["cost_usd"] == 2.5
