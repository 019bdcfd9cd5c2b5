"""POST /add-job?dry_run=true&team=: admins ask for a team that they are not in."""

from typing import Any

import pytest

from tests.bodies import body
from tests.integration.api.conftest import ADA, ADMIN, BOTH, Answer, Api


def tried(api: Api, *, user: str = ADMIN, **query: Any) -> Answer:
    return api.call("POST", "/add-job", body(TrainingJobName="a"), user=user, query=query)


def test_an_admin_in_no_team_tries_a_request_for_any_team(api: Api) -> None:
    assert tried(api, dry_run="true").status == 403
    answer = tried(api, dry_run="true", team="vision")
    assert (answer.status, answer.json["valid"], answer.json["pool"]) == (200, True, "p5")
    assert api.names(user=ADMIN) == []


def test_it_is_judged_by_the_rules_of_that_team(api: Api) -> None:
    tags = [{"Key": "priority", "Value": "700"}]
    request = body(TrainingJobName="a", Tags=tags)
    query = {"dry_run": "true"}
    ceiling = api.call("POST", "/add-job", request, user=ADMIN, query=query | {"team": "vision"}).json
    assert [one["field"] for one in ceiling["violations"]] == ["Tags[0].Value"]
    assert api.call("POST", "/add-job", request, user=ADMIN, query=query | {"team": "speech"}).json["valid"]


def test_who_is_in_several_teams_may_name_one_without_its_tag(api: Api) -> None:
    assert tried(api, user=BOTH, dry_run="true").status == 400
    assert tried(api, user=BOTH, dry_run="true", team="speech").json["valid"]


def test_nobody_else_tries_for_another_team(api: Api) -> None:
    assert tried(api, user=ADA, dry_run="true", team="speech").status == 403


@pytest.mark.parametrize(
    ("query", "field"),
    [
        pytest.param({"dry_run": "true", "team": "vison"}, "query.team", id="no such team"),
        pytest.param({"team": "vision"}, "query.team", id="not a dry run"),
        pytest.param({"dry_run": "false", "team": "vision"}, "query.team", id="said not to be one"),
        pytest.param({"dry_run": "yes", "team": "vision"}, "query.dry_run", id="neither true nor false"),
        pytest.param({"dry_run": "true", "tema": "vision"}, "query.tema", id="unknown"),
    ],
)
def test_a_parameter_that_is_not_valid_stores_nothing(api: Api, query: dict[str, str], field: str) -> None:
    assert tried(api, **query).fields == [field]
    assert api.names(user=ADMIN) == []
