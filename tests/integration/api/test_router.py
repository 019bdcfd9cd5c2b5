"""What holds for every route."""

from typing import Any

import pytest
from trainmaster.api import build_api

from tests.integration.api.conftest import ADA, Api, Untouchable

ROUTES = [
    ("POST", "/add-job"),
    ("GET", "/jobs"),
    ("GET", "/jobs/a"),
    ("DELETE", "/jobs/a"),
    ("GET", "/pools"),
    ("GET", "/policy"),
    ("PUT", "/policy"),
    ("PUT", "/policy/paused"),
]


@pytest.mark.parametrize("context", [{}, {"identity": {}}, {"identity": {"userArn": None}}])
def test_G4_without_a_caller_nothing_is_read_or_written(api: Api, context: dict[str, Any]) -> None:
    nothing = Untouchable()
    api.handle = build_api(api.outside(store=nothing, reader=nothing, policies=nothing, wake_ups=nothing))
    for method, path in ROUTES:
        answer = api.call(method, path, {}, requestContext=context)
        assert (answer.status, answer.fields) == (500, [])


@pytest.mark.parametrize(
    "user",
    [
        pytest.param("arn:aws:iam::111122223333:root", id="root"),
        pytest.param("arn:aws:sts::111122223333:federated-user/ada", id="federated"),
        pytest.param(ADA.replace("1111", "4444"), id="another account"),
        pytest.param(ADA.replace("vision-lead", "vision"), id="G12 a name that merely begins alike"),
    ],
)
def test_strangers_are_forbidden_everywhere(api: Api, user: str) -> None:
    assert {api.call(method, path, {}, user=user).status for method, path in ROUTES} == {403}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        pytest.param("GET", "/", id="no resource"),
        pytest.param("GET", "/add-job", id="another method"),
        pytest.param("PUT", "/jobs/a", id="a method that jobs do not have"),
        pytest.param("GET", "//jobs", id="a double slash"),
        pytest.param("GET", "/jobs/a/b", id="one part too many"),
        pytest.param("GET", "/../policy", id="a way out"),
    ],
)
def test_G11_what_is_not_there_is_a_404_problem(api: Api, method: str, path: str) -> None:
    answer = api.call(method, path)
    assert (answer.status, answer.fields) == (404, [])


def test_a_problem_document_has_a_type_of_its_own(api: Api) -> None:
    answer = api.get("/jobs", limit="x")
    assert answer.json["type"] == "urn:trainmaster:problem:invalid-request"
    assert answer.json["title"] == "Invalid request"
    assert answer.json["detail"].startswith("query.limit")


def test_a_policy_without_teams_lets_the_own_account_in(dynamodb: Any) -> None:
    api = Api(dynamodb, {"pools": [{"name": "p5", "capacity": {"ml.p5.48xlarge": 2}}]})
    assert (
        api.submit("a", user="arn:aws:sts::111122223333:assumed-role/any/s").json["job"]["team"] == "default"
    )
    assert api.get("/jobs", user="arn:aws:sts::444455556666:assumed-role/any/s").status == 403
    api.end("a")
    assert api.names(state="completed") == ["a"]


@pytest.mark.parametrize("method", ["GET", "DELETE", "PATCH"])
@pytest.mark.parametrize("name", ["..", "%2e%2e", "a b", "a#b", "-a", "a-", "a" * 64, "a" * 2049, "\u00e4"])
def test_G11_a_name_that_no_job_can_have_is_404_without_a_look_at_the_table(
    api: Api, method: str, name: str
) -> None:
    api.handle = build_api(api.outside(reader=Untouchable(), store=Untouchable()))
    assert api.call(method, f"/jobs/{name}", {"priority": 1} if method == "PATCH" else None).status == 404
