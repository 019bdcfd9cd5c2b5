"""Teams and roles whose names begin alike: team a beside team a-b."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.api.conftest import ADMIN, G5, ON_G5, OWN, P5, Api
from tests.integration.api.test_usage import spend

ROLES = {"a": "a", "a-b": "a-b", "a-b-c": "a-b-*"}
"""Team -> the role that is in it."""
DOCUMENT: dict[str, Any] = {
    "pools": [{"name": "p", "capacity": {P5: 2}}, {"name": "p-2", "capacity": {G5: 2}}],
    "teams": [
        {
            "name": team,
            "principals": [f"arn:aws:iam::{OWN}:role/{role}"],
            "roles": "any",
            "budget": {"usd_per_month": 1000},
        }
        for team, role in ROLES.items()
    ],
}
CALLERS = {"a": "a", "a-b": "a-b", "a-b-c": "a-b-lead"}


def caller(team: str) -> str:
    return f"arn:aws:sts::{OWN}:assumed-role/{CALLERS[team]}/a-b"


def job_of(team: str) -> str:
    return f"job-of-{CALLERS[team]}"


@pytest.fixture
def api(cloud: Any) -> Iterator[Api]:
    api = Api(cloud, DOCUMENT)
    yield api
    cloud.delete_table(TableName=api.table)


def test_G12_each_caller_is_in_its_own_team_alone(api: Api) -> None:
    for team in ROLES:
        answer = api.submit(job_of(team), user=caller(team))
        assert (answer.status, answer.json["job"]["team"]) == (201, team)
    for outsider in ("a-", "ab", "b", "A", "xa-b"):
        arn = f"arn:aws:sts::{OWN}:assumed-role/{outsider}/a"
        assert api.submit("job", user=arn).status == 403, outsider


@pytest.mark.long
def test_G12_lists_by_team_are_of_that_team_waiting_running_and_ended(api: Api) -> None:
    for team in ROLES:
        for state in ("waits", "runs", "ended"):
            api.submit(f"{job_of(team)}-{state}", user=caller(team))
        api.start(f"{job_of(team)}-runs")
        api.end(f"{job_of(team)}-ended")
    for team in ROLES:
        own = job_of(team)
        assert api.names(user=ADMIN, team=team) == [f"{own}-runs", f"{own}-waits"]
        assert api.names(user=ADMIN, team=team, state="completed") == [f"{own}-ended"]
        assert [name for name in api.names(user=caller(team)) if name] == [f"{own}-runs", f"{own}-waits"]


def test_G12_nobody_reaches_into_the_other_team(api: Api) -> None:
    for team in ROLES:
        api.submit(job_of(team), user=caller(team))
    for team in ROLES:
        for other in ROLES.keys() - {team}:
            assert api.get(f"/jobs/{job_of(other)}", user=caller(team)).status == 404
            assert api.call("DELETE", f"/jobs/{job_of(other)}", user=caller(team)).status == 404
            assert api.get("/usage", user=caller(team), team=other).status == 403


def test_G12_what_a_team_used_is_counted_for_it_alone(api: Api) -> None:
    for hours, team in enumerate(ROLES, start=1):
        spend(api, job_of(team), hours=hours, user=caller(team))
    for hours, team in enumerate(ROLES, start=1):
        found = api.get("/usage", user=caller(team)).json
        assert [(job["name"], job["usd"]) for job in found["jobs"]] == [(job_of(team), 10.0 * hours)]
        assert found["total"]["usd"] == 10.0 * hours


def test_G12_pools_that_begin_alike_count_for_themselves(api: Api) -> None:
    api.submit("in-p", user=caller("a"))
    api.submit("in-p-2", user=caller("a"), ResourceConfig=ON_G5)
    api.start("in-p-2")
    assert (api.names(user=ADMIN, pool="p"), api.names(user=ADMIN, pool="p-2")) == (["in-p"], ["in-p-2"])
    pools = api.get("/pools", user=ADMIN).json["pools"]
    assert [(pool["name"], pool["waiting"]) for pool in pools] == [("p", 1), ("p-2", 0)]
