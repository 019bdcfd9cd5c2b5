"""``trainmaster usage`` with sums: by what, over which time, as a table, as CSV, as JSON."""

import json

import pytest

from tests.integration.client.command import Trainmaster
from tests.integration.client.fake_api import FakeApi, Scripted

SPENT = {"productive": 90.0, "preemption": 10.0}
GROUPS = {
    "from": "2026-11-01T00:00:00Z",
    "to": "2026-12-01T00:00:00Z",
    "group_by": "team",
    "groups": [
        {"key": "vision", "instance_hours": 12.25, "usd": 100.0, "by": SPENT},
        {"key": None, "instance_hours": 2, "usd": None, "by": None},
        {"key": "[b]x[/b]\x1b", "instance_hours": 1, "usd": 0, "by": {}},
    ],
    "total": {"instance_hours": 15.25, "usd": 100.0, "by": SPENT},
    "next_token": None,
}


def test_sums_are_a_table_with_shares(trainmaster: Trainmaster, api: FakeApi) -> None:
    api.script("GET", "/usage", Scripted(document=GROUPS))
    ran = trainmaster("usage", "--group-by", "team", "--team", "*", "--from", "2026-11-01T00:00:00Z")
    assert ran.out.splitlines() == [
        "2026-11-01T00:00:00Z to 2026-12-01T00:00:00Z: 15.25 instance-hours, 100.00 USD spent; 90 % useful",
        "TEAM       HOURS     USD    SHARE  USEFUL",
        "vision      12.2  100.00  100.0 %  90.0 %",
        "-            2.0       ?        -       -",
        "[b]x[/b]     1.0    0.00    0.0 %       -",
    ]
    assert api.received[0].query == {
        "group_by": ["team"],
        "team": ["*"],
        "from": ["2026-11-01T00:00:00Z"],
    }


def test_all_teams_are_summed_by_team_and_what_was_not_read_is_said(
    trainmaster: Trainmaster, api: FakeApi
) -> None:
    api.script("GET", "/usage", Scripted(document={**GROUPS, "truncated": True}))
    ran = trainmaster("usage", "--team", "*")
    assert api.received[0].query == {"group_by": ["team"], "team": ["*"]}
    assert ran.out.splitlines()[-1].startswith("More jobs than the API reads at once")


def test_csv_is_the_apis_own(trainmaster: Trainmaster, api: FakeApi) -> None:
    text = "job,instance_hours,usd\r\njob1,1,2\r\n"
    api.script("GET", "/usage", Scripted(raw=text.encode(), headers={"content-type": "text/csv"}))
    ran = trainmaster("usage", "--csv")
    assert ran.out.splitlines() == ["job,instance_hours,usd", "job1,1,2"]
    (received,) = api.received
    assert received.query == {"group_by": ["job"]}
    assert received.headers["accept"] == "text/csv"


def test_json_is_what_the_api_said(trainmaster: Trainmaster, api: FakeApi) -> None:
    api.script("GET", "/usage", Scripted(document=GROUPS))
    assert json.loads(trainmaster("usage", "--group-by", "day", "--json").out) == GROUPS


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--group-by", "day", "--month", "2026-11"], "--month gives no sums."),
        (["--from", "7d"], "--from and --to go with --group-by or --commit."),
        (["--csv", "--json"], "--csv and --json exclude each other."),
        (["--group-by", "day", "--from", "soon"], "--from: 'soon' is not a valid time"),
        (["--group-by", "colour"], "Invalid value for '--group-by'"),
    ],
)
def test_what_does_not_go_together_is_exit_code_2(
    arguments: list[str], message: str, trainmaster: Trainmaster, api: FakeApi
) -> None:
    ran = trainmaster("usage", *arguments)
    assert (ran.code, api.received) == (2, [])
    assert message in ran.err


def test_sums_of_another_shape_are_an_error_of_ours(trainmaster: Trainmaster, api: FakeApi) -> None:
    api.script("GET", "/usage", Scripted(document={"groups": []}))
    ran = trainmaster("usage", "--group-by", "team")
    assert ran.code == 1
    assert "in a way this client does not know" in ran.err
