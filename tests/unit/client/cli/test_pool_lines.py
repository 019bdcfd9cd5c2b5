"""``trainmaster pools``: what a team has used of its share."""

from typing import Any

import pytest
from trainmaster_client.cli.pools import pool_lines
from trainmaster_client.errors import MalformedViewError
from trainmaster_client.views.pool_rows import pool_rows

from tests.builders import NOON

POOL: dict[str, Any] = {"name": "p5", "capacity": {"ml.p5.48xlarge": 2}, "waiting": 0}
STANDING = {"instance_hours": 12.04, "share": 0.25, "used_share": 0.5, "times": 2.04, "points": -10.26}
AWAY = {"instance_hours": 3.0, "share": None, "used_share": None, "times": None, "points": None}


def team_line(share: dict[str, Any] | None, rules: dict[str, Any] | None) -> str:
    team = {"name": "vision", "used": {}, "waiting": 1} | ({"fair_share": share} if share else {})
    view = POOL | {"teams": [team]} | ({"fair_share": rules} if rules else {})
    *_, line = pool_lines(pool_rows([view], now=NOON))
    return line


@pytest.mark.parametrize(
    ("share", "rules", "expected"),
    [
        pytest.param(
            STANDING,
            {"half_life": "7d", "weight": 10},
            "  team vision: uses nothing, 1 waiting,"
            " used 2.0 times its share of 25% (half-life 7d): -10.3 points",
            id="with fair share",
        ),
        pytest.param(
            AWAY,
            {"half_life": "7d", "weight": 10},
            "  team vision: uses nothing, 1 waiting, 3.0 instance-hours used recently",
            id="a team that has no jobs in the pool has no part in it",
        ),
        pytest.param(
            STANDING,
            {"half_life": "7d", "weight": 0},
            "  team vision: uses nothing, 1 waiting",
            id="where it decides nothing it is not said",
        ),
        pytest.param(None, None, "  team vision: uses nothing, 1 waiting", id="an older stack"),
    ],
)
def test_a_team(share: dict[str, Any] | None, rules: dict[str, Any] | None, expected: str) -> None:
    assert team_line(share, rules) == expected


def test_what_keeps_jobs_from_starting_is_said_in_lengths_of_time() -> None:
    pause = {
        "role_arn": None,
        "since": "2026-11-02T10:00:00Z",
        "code": "refused",
        "message": None,
        "next_probe_at": "2026-11-02T12:25:00Z",
    }
    limit = {"instance_type": "ml.p5.48xlarge", "capacity_type": "spot", "limit": 3}
    view = POOL | {
        "recount": {"code": "recount", "message": "the counters are missing"},
        "account_limits": [{**limit, "until": "2026-11-02T12:30:00Z"}],
        "start_pauses": [pause],
        "warm_pools": [
            {"instance_type": "ml.p5.48xlarge", "instances": 2, "expires_at": "2026-11-02T12:10:00Z"}
        ],
    }
    assert list(pool_lines(pool_rows([view], now=NOON)))[2:] == [
        "  warm: 2x ml.p5.48xlarge for 10m",
        "  nothing starts until the pool is recounted: the counters are missing",
        "  the account allowed 3 spot ml.p5.48xlarge; the next try above it is in 30m",
        (
            "  starts with a role of another team have been paused for 2h00m, AWS says refused;"
            " the next try is in 25m or later"
        ),
    ]


def test_a_pool_of_another_shape_is_an_error_of_ours() -> None:
    with pytest.raises(MalformedViewError):
        pool_rows([POOL | {"capacity": {"ml.p5.48xlarge": "many"}}], now=NOON)


def test_the_changes_of_a_calendar_are_shown_all_or_the_next() -> None:
    changes = [
        {"at": "2026-11-02T18:00:00.000Z", "capacity": {"ml.p5.48xlarge": 1}},
        {"at": "2026-11-03T08:00:00.000Z", "capacity": {"ml.p5.48xlarge": 2}},
    ]
    rows = pool_rows([POOL | {"calendar": changes}], now=NOON)
    first = "  from 2026-11-02 18:00 UTC on 1x ml.p5.48xlarge"
    assert list(pool_lines(rows))[2:] == [first, "  and 1 more changes of the calendar in 7 days (--ahead)"]
    assert list(pool_lines(rows, ahead=True))[2:] == [
        first,
        "  from 2026-11-03 08:00 UTC on 2x ml.p5.48xlarge",
    ]


def test_reservations_are_shown_the_next_one_and_with_ahead_all() -> None:
    kept = {"team": "vision", "from": "2026-12-01T08:00:00.000Z", "to": "2026-12-01T20:00:00.000Z"}
    names = ("demo-day", "exam")
    reservations = [kept | {"name": name, "instances": {"ml.p5.48xlarge": 1}} for name in names]
    rows = pool_rows([POOL | {"reservations": reservations}], now=NOON)
    lines = [
        f"  reservation {name}, 2026-12-01 08:00 UTC to 2026-12-01 20:00 UTC: 1x ml.p5.48xlarge"
        " for team vision alone"
        for name in names
    ]
    assert list(pool_lines(rows, ahead=True))[2:] == lines
    assert list(pool_lines(rows))[2:] == [lines[0], "  and 1 more reservations in 7 days (--ahead)"]
