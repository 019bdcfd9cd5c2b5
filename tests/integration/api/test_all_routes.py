"""Every route that reads, as an admin, a scientist and a stranger: who may, and what nobody gets to see."""

import json
from typing import Any

import pytest
from trainmaster.api import router

from tests.integration.api.conftest import ADA, ADMIN, BOB, DOCUMENT, STRANGER, Api
from tests.integration.api.test_usage import spend

FOR_ALL = (
    "/jobs",
    "/jobs?state=completed",
    "/arrays",
    "/arrays?state=completed",
    "/pools",
    "/me",
    "/rules",
    "/estimates",
    "/usage",
    "/usage?group_by=user",
    "/usage?group_by=day",
    "/violations",
    "/timeline",
    "/pools/history",
    "/events",
)
FOR_ADMINS = ("/policy", "/repair", "/history/export", "/usage?team=*", "/usage?team=*&group_by=model_name")


def asked(api: Api, target: str, user: str) -> tuple[int, str]:
    path, _, query = target.partition("?")
    given = dict(part.split("=") for part in query.split("&")) if query else {}
    if path == "/usage" and user == ADMIN:
        given = {"team": "vision"} | given
    answer = api.get(path, user=user, **given)
    return answer.status, answer.text


@pytest.fixture(scope="module")  # nothing here changes it
def busy(cloud: Any) -> Api:
    """One job of each team that has ended, and one of each that waits."""
    api = Api(cloud, DOCUMENT)
    spend(api, "quiet-vision")
    spend(api, "quiet-speech", user=BOB)
    for name, user in (("loud-vision", ADA), ("loud-speech", BOB)):
        api.submit(name, user=user)
    return api


@pytest.mark.parametrize("target", FOR_ALL)
def test_a_scientist_and_an_admin_may_and_a_stranger_may_not(busy: Api, target: str) -> None:
    statuses = [asked(busy, target, user)[0] for user in (ADA, BOB, ADMIN, STRANGER)]
    assert statuses == [200, 200, 200, 403]


@pytest.mark.parametrize("target", FOR_ADMINS)
def test_what_is_for_admins_is_refused_to_everybody_else(busy: Api, target: str) -> None:
    statuses = [asked(busy, target, user)[0] for user in (ADA, STRANGER)]
    assert statuses == [403, 403]
    assert asked(busy, target, ADMIN)[0] in {200, 404}


@pytest.mark.parametrize("target", FOR_ALL)
def test_no_answer_names_a_job_or_a_person_of_another_team(busy: Api, target: str) -> None:
    for user, others in ((ADA, ("-speech", "speech/bob")), (BOB, ("-vision", "vision-lead/ada"))):
        status, text = asked(busy, target, user)
        assert status == 200
        assert not [other for other in others if other in text], (target, json.loads(text))


@pytest.mark.parametrize("target", [*FOR_ALL, *FOR_ADMINS])
def test_a_parameter_that_no_route_knows_is_an_error_everywhere(busy: Api, target: str) -> None:
    more = "&" if "?" in target else "?"
    assert asked(busy, f"{target}{more}nonsense=1", ADMIN)[0] == 400


def test_no_reading_route_is_left_out(busy: Api) -> None:
    resolver = router.routes(busy.outside())
    served = {route.path for route in resolver._static_routes if route.method == "GET"}
    walked = {target.partition("?")[0] for target in (*FOR_ALL, *FOR_ADMINS)}
    assert served == walked
