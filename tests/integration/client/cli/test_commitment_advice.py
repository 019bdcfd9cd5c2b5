"""``trainmaster usage --commit``: what is read, what is printed, what is refused."""

import json
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

import pytest
from trainmaster_client.cli import commitment_advice

from tests.integration.client.command import Trainmaster
from tests.integration.client.fake_api import FakeApi, Received, Scripted, problem

G5 = "ml.g5.12xlarge"
NOW = datetime(2026, 11, 27, 14, 20, tzinfo=UTC)
HOUR = timedelta(hours=1)
HEAD = (
    "2026-10-28 14:00 to 2026-11-27 14:00 UTC, 720 hours: 17,280.00 USD on demand,"
    " 24.00 USD an hour on average."
)
VERDICT = (
    "At 30 % the best commitment is 14.00 USD an hour. It covers 20.00 USD an hour at on-demand prices,"
    " of which 90 % was used, and would have saved 2,880.00 USD."
)
DISCOUNTS = (
    "The discount depends on type, region, term and payment: aws.amazon.com/savingsplans/ml-pricing."
    " A plan also covers notebooks, endpoints and processing, which are not counted here."
)


class Clock:
    @staticmethod
    def now(_: tzinfo) -> datetime:
        return NOW


@pytest.fixture(autouse=True)
def _now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commitment_advice, "datetime", Clock)


def text(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


def points(since: datetime, hours: int, others: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """Nothing in the first tenth of the hours, then 2 instances of G5, in the last tenth 8."""
    counts = [0] * (hours // 10) + [2] * (hours - 2 * (hours // 10)) + [8] * (hours // 10)
    return [
        {
            "at": text(since + number * HOUR),
            "on-demand": {G5: {"used": count, "warm": 0.5, "capacity": 8, "waiting": 0}, **(others or {})},
            "spot": {},
        }
        for number, count in enumerate(counts)
    ]


def script(
    api: FakeApi, *, days: int = 30, policy: Scripted | None = None, others: dict[str, Any] | None = None
) -> None:
    """Record as many days, in answers of a week each."""
    since = datetime(2026, 11, 27, 14, tzinfo=UTC) - timedelta(days=days)
    rows = points(since, days * 24, others)
    weeks = [rows[first : first + 168] for first in range(0, len(rows), 168)]
    document = {"step": 3600, "points": [], "since": text(since - timedelta(minutes=30))}
    api.script("GET", "/pools", Scripted(document={"pools": [{"name": "g5"}, {"name": "more"}]}))
    api.script(
        "GET",
        "/pools/history",
        *([Scripted(document=document)] * (1 if days >= 30 else 2)),
        *(Scripted(document={**document, "points": week}) for week in weeks),
    )
    prices = Scripted(document={"revision": 1, "policy": {"prices": {G5: 10}}})
    api.script("GET", "/policy", policy or prices)


def history_calls(api: FakeApi) -> list[Received]:
    return [received for received in api.received if received.path == "/pools/history"]


def test_one_discount_is_said_in_words(trainmaster: Trainmaster, api: FakeApi) -> None:
    script(api)
    ran = trainmaster("usage", "--commit", "--discount", "30%")
    assert (ran.code, ran.err) == (0, "")
    # 720 hours: 72 of 0, 576 of 20 and 72 of 80 USD. 20 are covered for 14: 0.9 x 14,400 - 10,080 are saved.
    assert ran.out.splitlines() == [
        HEAD,
        "Steady base at a discount of 30 %, for which use in 70 % of the hours is enough:",
        "  2 of 8 ml.g5.12xlarge in 90 % of the hours: 20.00 USD an hour",
        "DISCOUNT  COMMIT USD/H  COVERS USD/H  USED  BREAK-EVEN  SAVED USD  OF ALL",
        "    30 %         14.00         20.00  90 %        70 %   2,880.00  16.7 %",
        VERDICT,
        "It breaks even at 70 %: where less of it is used, it costs more than it saves.",
        "Left out, in instance-hours: warm pool 360. Only jobs' on-demand use is counted.",
        DISCOUNTS,
    ]


def test_the_period_is_whole_hours_read_a_week_at_a_time(trainmaster: Trainmaster, api: FakeApi) -> None:
    script(api)
    trainmaster("usage", "--commit")
    begin, *weeks = history_calls(api)
    assert begin.query["pool"] == ["g5"]
    assert [(week.query["from"], week.query["to"]) for week in weeks] == [
        (["2026-10-28T14:00:00Z"], ["2026-11-04T14:00:00Z"]),
        (["2026-11-04T14:00:00Z"], ["2026-11-11T14:00:00Z"]),
        (["2026-11-11T14:00:00Z"], ["2026-11-18T14:00:00Z"]),
        (["2026-11-18T14:00:00Z"], ["2026-11-25T14:00:00Z"]),
        (["2026-11-25T14:00:00Z"], ["2026-11-27T14:00:00Z"]),
    ]
    assert all(week.query["step"] == ["3600"] and "pool" not in week.query for week in weeks)


def test_without_a_discount_three_are_compared(trainmaster: Trainmaster, api: FakeApi) -> None:
    script(api)
    lines = trainmaster("usage", "--commit").out.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("DISCOUNT"))
    assert [line.split()[0] for line in lines[first + 1 : first + 4]] == ["20", "40", "60"]
    assert lines[first + 4].startswith("At 40 % the best commitment is 12.00 USD an hour.")


def test_json_and_csv_have_the_same_figures(trainmaster: Trainmaster, api: FakeApi) -> None:
    script(api)
    document = json.loads(trainmaster("usage", "--commit", "--discount", "30", "--json").out)
    assert (document["from"], document["to"]) == ("2026-10-28T14:00:00Z", "2026-11-27T14:00:00Z")
    assert (document["hours"], document["on_demand_usd"]) == (720, 17280.0)
    (commitment,) = document["commitments"]
    (base,) = commitment.pop("base")
    assert base == {
        "instance_type": G5,
        "instances": 2.0,
        "capacity": 8.0,
        "share_of_hours": 0.9,
        "mean_instances": 2.4,
        "usd_per_instance_hour": 10.0,
    }
    assert document["left_out_instance_hours"] == {"spot": 0, "training_plan": 0, "warm_pool": 360}
    script(api)
    head, row = trainmaster("usage", "--commit", "--discount", "30", "--csv").out.splitlines()
    assert dict(zip(head.split(","), map(float, row.split(",")), strict=True)) == commitment
    assert commitment["saved_usd"] == 2880.0


def test_a_member_gets_list_prices_and_hears_it(trainmaster: Trainmaster, api: FakeApi) -> None:
    script(api, policy=problem(403, "Forbidden", "for admins"))
    ran = trainmaster("usage", "--commit", "--discount", "30%")
    assert ran.code == 0
    assert f"At list prices of us-east-1; only admins can read the policy's own: {G5}." in ran.out


def test_a_type_without_a_price_is_named(trainmaster: Trainmaster, api: FakeApi) -> None:
    other = {"ml.p9.48xlarge": {"used": 3, "warm": 0, "capacity": 4, "waiting": 0}}
    script(api, others=other)
    ran = trainmaster("usage", "--commit", "--discount", "30%")
    assert "  3 of 4 ml.p9.48xlarge in 100 % of the hours; price unknown" in ran.out.splitlines()
    assert "In no sum, as the price is unknown: ml.p9.48xlarge." in ran.out


def test_a_short_history_is_said_and_too_short_a_one_gives_no_advice(
    trainmaster: Trainmaster, api: FakeApi
) -> None:
    script(api, days=3)
    ran = trainmaster("usage", "--commit", "--discount", "30%")
    assert "The record begins 2026-11-24 14:00 UTC; what ran before is not in it." in ran.out
    assert "3 days are a short time: a plan is for one or three years." in ran.out
    script(api)
    api.script(
        "GET",
        "/pools/history",
        Scripted(document={"points": [], "since": text(NOW - 8 * HOUR)}),
        Scripted(document={"points": [], "since": None}),
        Scripted(document={"points": points(NOW.replace(minute=0) - 7 * HOUR, 7)}),
    )
    ran = trainmaster("usage", "--commit", "--discount", "30%")
    assert ran.code == 0
    assert "That is too short a history for advice: it takes 24 hours at least" in ran.out
    assert "DISCOUNT" not in ran.out


def test_without_any_history_it_says_so(trainmaster: Trainmaster, api: FakeApi) -> None:
    script(api)
    api.script("GET", "/pools/history", Scripted(document={"points": [], "since": None}))
    ran = trainmaster("usage", "--commit")
    assert ran.code == 2
    assert "This stack has no history yet" in ran.err


def test_where_hours_are_mostly_quiet_no_commitment_is_advised(
    trainmaster: Trainmaster, api: FakeApi
) -> None:
    script(api)
    ran = trainmaster("usage", "--commit", "--discount", "5%")
    assert "At 5 % no commitment would have saved anything" in ran.out
    assert "  none of 8 ml.g5.12xlarge; 2.4 on average" in ran.out.splitlines()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--commit", "--discount", "much"], "--discount 'much' is not a percentage."),
        (["--commit", "--discount", ""], "--discount '' is not a percentage."),
        (["--commit", "--discount", "0.3"], "--discount '0.3' is not between 1% and 99%."),
        (["--commit", "--discount", "100%"], "is not between 1% and 99%."),
        (["--commit", "--discount", "nan"], "is not between 1% and 99%."),
        (["--commit", "--discount=-20%"], "is not between 1% and 99%."),
        (["--discount", "30%"], "--discount is for Savings Plans."),
        (["--commit", "--team", "vision"], "so --team does not go with it."),
        (["--commit", "--month", "2026-11"], "so --month does not go with it."),
        (["--commit", "--group-by", "day"], "so --group-by does not go with it."),
        (["--commit", "--csv", "--json"], "--csv and --json exclude each other."),
        (["--commit", "--from", "soon"], "--from: 'soon' is not a valid time"),
        (["--commit", "--from", "200d"], "--commit reads at most 92 days."),
        (["--commit", "--from", "1d", "--to", "2d"], "The period begins at"),
    ],
)
def test_bad_options_are_refused_before_anything_is_read(
    arguments: list[str], message: str, trainmaster: Trainmaster, api: FakeApi
) -> None:
    ran = trainmaster("usage", *arguments)
    assert (ran.code, api.received) == (2, [])
    assert message in " ".join(ran.err.split())


def test_answers_of_another_shape_are_an_error_of_ours(trainmaster: Trainmaster, api: FakeApi) -> None:
    script(api)
    api.script("GET", "/pools/history", Scripted(document={"points": [{}], "since": text(NOW - 800 * HOUR)}))
    ran = trainmaster("usage", "--commit")
    assert ran.code == 1
    assert "in a way this client does not know" in ran.err
