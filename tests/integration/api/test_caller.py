"""GET /me and GET /rules."""

import copy
import json
from typing import Any

import pytest

from tests.integration.api.conftest import ADA, ADMIN, BOB, BOTH, DOCUMENT, OWN, STRANGER, Api

ROLE = f"arn:aws:iam::{OWN}:role/vision-training"


def with_rules() -> dict[str, Any]:
    document = copy.deepcopy(DOCUMENT)
    document["rules"] = {"max_instances": 16, "remote_debug": {"mode": "allow"}}
    document["pools"][0]["quotas"] = {
        "vision": {"nominal": {"ml.p5.48xlarge": 1}, "borrowing_limit": {"ml.p5.48xlarge": 1}}
    }
    document["teams"][0] |= {
        "roles": [ROLE],
        "images": ["763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training"],
        "s3_prefixes": ["s3://vision-data/"],
        "rules": {"max_instances": 4},
        "budget": {"usd_per_month": 50000},
    }
    del document["teams"][1]["roles"]
    return document


def test_me_says_who_the_caller_is_and_what_bounds_their_jobs(api: Api) -> None:
    api.call("PUT", "/policy", with_rules(), user=ADMIN)
    assert api.get("/me").json == {
        "principal": f"arn:aws:iam::{OWN}:role/vision-lead",
        "submitted_by": ADA,
        "admin": False,
        "teams": [
            {
                "name": "vision",
                "max_priority": 500,
                "roles": [ROLE],
                "images": ["763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training"],
                "s3_prefixes": ["s3://vision-data/"],
            }
        ],
    }


def test_a_team_whose_roles_nobody_wrote_may_use_none(api: Api) -> None:
    api.call("PUT", "/policy", with_rules(), user=ADMIN)
    (team,) = api.get("/me", user=BOB).json["teams"]
    assert (team["name"], team["roles"], team["images"]) == ("speech", [], None)


def test_without_teams_everybody_is_in_the_default_one_and_may_use_any_role(api: Api) -> None:
    api.call("PUT", "/policy", {"pools": DOCUMENT["pools"]}, user=ADMIN)
    (team,) = api.get("/me").json["teams"]
    assert team == {
        "name": "default",
        "max_priority": 1000,
        "roles": "any",
        "images": None,
        "s3_prefixes": None,
    }
    assert [team["name"] for team in api.get("/rules").json["teams"]] == ["default"]


def test_an_admin_may_be_in_no_team(api: Api) -> None:
    answer = api.get("/me", user=ADMIN).json
    assert (answer["principal"], answer["admin"], answer["teams"]) == (ADMIN, True, [])


def test_rules_are_those_of_the_policy_and_of_the_callers_team(api: Api) -> None:
    revision = api.call("PUT", "/policy", with_rules(), user=ADMIN).json["revision"]
    answer = api.get("/rules").json
    assert answer["revision"] == revision
    assert answer["rules"] == {
        "secrets": {"mode": "enforce"},
        "remote_debug": {"mode": "allow"},
        "session_chaining": {"mode": "enforce"},
        "max_instances": 16,
    }
    (team,) = answer["teams"]
    assert team["rules"] == {"max_instances": 4}
    assert team["budget"] == {"usd_per_month": 50000}
    assert [(pool["name"], pool["quota"] and pool["quota"]["nominal"]) for pool in team["pools"]] == [
        ("p5", {"ml.p5.48xlarge": 1}),
        ("g5", None),
    ]
    assert team["pools"][1]["limits"]["max_waiting"] == 5000


def test_a_scientist_reads_nothing_of_another_team_and_nobodys_principals(api: Api) -> None:
    api.call("PUT", "/policy", with_rules(), user=ADMIN)
    for path in ("/me", "/rules"):
        text = json.dumps(api.get(path, user=BOB).json)
        for hidden in ('"vision"', ROLE, "50000", "floater", "vision-data", "principals"):
            assert hidden not in text, path


@pytest.mark.parametrize(
    ("user", "teams"),
    [
        pytest.param(BOTH, ["vision", "speech"], id="of several teams"),
        pytest.param(ADMIN, ["vision", "speech"], id="an admin sees all"),
        pytest.param(BOB, ["speech"], id="of one team"),
    ],
)
def test_rules_are_cut_to_the_teams_of_the_caller(api: Api, user: str, teams: list[str]) -> None:
    assert [team["name"] for team in api.get("/rules", user=user).json["teams"]] == teams


@pytest.mark.parametrize("path", ["/me", "/rules"])
def test_a_stranger_is_refused_and_a_parameter_that_is_not_known_too(api: Api, path: str) -> None:
    assert api.get(path, user=STRANGER).status == 403
    assert api.get(path, team="vision").fields == ["query.team"]


def test_they_count_as_reads(api: Api) -> None:
    document = copy.deepcopy(DOCUMENT)
    for pool in document["pools"]:
        pool["limits"] = {"max_reads_per_minute": 2}
    api.call("PUT", "/policy", document, user=ADMIN)
    assert [api.get(path).status for path in ("/me", "/rules", "/me")] == [200, 200, 429]
