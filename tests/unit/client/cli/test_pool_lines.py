"""``trainmaster pools``: what a team has used of its share."""

from typing import Any

import pytest
from trainmaster_client.cli.pools import pool_lines

from tests.builders import NOON

POOL: dict[str, Any] = {"name": "p5", "capacity": {"ml.p5.48xlarge": 2}, "waiting": 0}
STANDING = {"instance_hours": 12.04, "share": 0.25, "used_share": 0.5, "times": 2.04, "points": -10.26}
AWAY = {"instance_hours": 3.0, "share": None, "used_share": None, "times": None, "points": None}


def team_line(share: dict[str, Any] | None, rules: dict[str, Any] | None) -> str:
    team = {"name": "vision", "used": {}, "waiting": 1} | ({"fair_share": share} if share else {})
    view = POOL | {"teams": [team]} | ({"fair_share": rules} if rules else {})
    *_, line = pool_lines([view], now=NOON)
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
