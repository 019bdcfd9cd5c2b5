"""Keys of the table: no two things share one, whatever their names."""

from datetime import UTC, datetime

from hypothesis import example, given
from hypothesis import strategies as st
from trainmaster.adapters.dynamodb import layout
from trainmaster.core.policy import parse_policy

MONTH = f"{datetime(2026, 11, 22, tzinfo=UTC):%Y-%m}"
NAMES = st.from_regex(r"[ab0][ab0_.:/=+@-]{0,3}", fullmatch=True)
"""Few characters, so that names often begin alike: the ones that a policy takes."""


def keys(pool: str, team: str) -> list[object]:
    """One of each kind that holds the name of a pool, a team, or both."""
    return [
        layout.queue_partition(pool, team, "od#ml.g5.xlarge:1"),
        layout.minute_key(pool, team, 1),
        layout.run_times_key(pool, team, "od#ml.g5.xlarge:1"),
        layout.team_key(pool, team),
    ]


@given(NAMES, NAMES, NAMES, NAMES)
@example("a", "b-a", "a-b", "a")
@example("a", "a:b", "a:a", "b")
def test_G12_two_teams_of_two_pools_share_no_key(pool: str, team: str, pool2: str, team2: str) -> None:
    same = [mine == theirs for mine, theirs in zip(keys(pool, team), keys(pool2, team2), strict=True)]
    assert same == [(pool, team) == (pool2, team2)] * 4


@given(NAMES, NAMES)
@example("a", "a-b")
def test_G12_two_teams_share_no_ledger(team: str, team2: str) -> None:
    mine, theirs = layout.month_key(team, MONTH), layout.month_key(team2, MONTH)
    assert (mine == theirs) == (team == team2)


@given(NAMES)
def test_the_names_tried_here_are_names_of_a_policy(name: str) -> None:
    assert parse_policy({"pools": [{"name": name, "capacity": {"ml.g5.xlarge": 1}}]}).pools[0].name == name
