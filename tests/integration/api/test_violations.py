"""GET /violations."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from trainmaster.api import violations
from trainmaster.core.policy.job_rules import Mode
from trainmaster.core.rules.violation import Outcome, Violation, ViolationRecord

from tests.integration.api.conftest import ADA, ADMIN, BOB, OWN, STRANGER, Api

ROLE = f"arn:aws:iam::{OWN}:role/vision-training"
AUDITED = Violation(
    rule="vpc_required", field="VpcConfig", message="is missing", hint="add it", mode=Mode.AUDIT
)
ENFORCED = Violation(
    rule="max_instances", field="ResourceConfig.InstanceCount", message="is 9", hint="at most 4"
)


def keep(api: Api, name: str, *, days: float = 0, **fields: Any) -> None:
    values: dict[str, Any] = {
        "at": api.now + timedelta(days=days),
        "training_job_name": name,
        "training_job_arn": f"arn:aws:sagemaker:us-east-1:{OWN}:training-job/{name}",
        "team": "vision",
        "role_arn": ROLE,
        "unmanaged": True,
        "outcome": Outcome.STOPPED,
        "violations": (),
    }
    assert api.store.record_violation(ViolationRecord(**values | fields))


def names(api: Api, *, user: str = ADA, **query: Any) -> list[str]:
    answer = api.get("/violations", user=user, **query)
    assert answer.status == 200, answer
    return [record["training_job_name"] for record in answer.json["violations"]]


def test_a_record_says_what_was_found_and_what_became_of_it(api: Api) -> None:
    keep(api, "stray", violations=(AUDITED, ENFORCED))
    answer = api.get("/violations")
    assert answer.status == 200
    assert answer.json == {
        "month": "2026-11",
        "violations": [
            {
                "at": "2026-11-02T12:00:00.000Z",
                "training_job_name": "stray",
                "training_job_arn": f"arn:aws:sagemaker:us-east-1:{OWN}:training-job/stray",
                "team": "vision",
                "principal": ROLE,
                "role_arn": ROLE,
                "unmanaged": True,
                "rule": "max_instances",
                "message": "ResourceConfig.InstanceCount is 9",
                "outcome": "stopped",
                "action": "stopped",
                "violations": [
                    {
                        "rule": "max_instances",
                        "field": "ResourceConfig.InstanceCount",
                        "message": "is 9",
                        "hint": "at most 4",
                        "mode": "enforce",
                    },
                    {
                        "rule": "vpc_required",
                        "field": "VpcConfig",
                        "message": "is missing",
                        "hint": "add it",
                        "mode": "audit",
                    },
                ],
            }
        ],
        "next_token": None,
    }


def test_one_that_was_stopped_for_no_rule_says_so(api: Api) -> None:
    keep(api, "stray", violations=(AUDITED,))
    (record,) = api.get("/violations").json["violations"]
    assert record["action"] == "stopped"
    assert (record["rule"], record["message"]) == ("unmanaged_jobs", "it did not come through the queue")
    assert [one["rule"] for one in record["violations"]] == ["vpc_required"]


def test_one_that_breaks_no_rule_says_that_it_went_round_the_queue(api: Api) -> None:
    keep(api, "stray")
    (record,) = api.get("/violations").json["violations"]
    assert (record["rule"], record["message"]) == ("unmanaged_jobs", "it did not come through the queue")
    assert record["violations"] == []


def test_the_newest_come_last_and_other_months_by_their_name(api: Api) -> None:
    keep(api, "later", days=1)
    keep(api, "sooner")
    keep(api, "last-month", days=-10)
    assert names(api) == ["sooner", "later"]
    assert names(api, month="2026-10") == ["last-month"]
    assert names(api, month="2026-09") == []


def test_teams_see_their_own_and_admins_all(api: Api) -> None:
    keep(api, "of-vision")
    keep(api, "of-speech", team="speech")
    keep(api, "of-nobody", team="unmanaged")
    assert names(api, user=ADA) == ["of-vision"]
    assert names(api, user=BOB) == ["of-speech"]
    assert sorted(names(api, user=ADMIN)) == ["of-nobody", "of-speech", "of-vision"]


def test_strangers_are_refused(api: Api) -> None:
    keep(api, "stray")
    assert api.get("/violations", user=STRANGER).status == 403


@pytest.mark.parametrize(
    ("query", "field"),
    [
        pytest.param({"month": "2026-13"}, "query.month", id="no month"),
        pytest.param({"team": "vision"}, "query.team", id="an unknown parameter"),
        pytest.param({"next_token": "x"}, "query.next_token", id="no token"),
    ],
)
def test_what_cannot_be_answered_is_400(api: Api, query: dict[str, str], field: str) -> None:
    answer = api.get("/violations", **query)
    assert (answer.status, answer.fields) == (400, [field])


def test_a_long_month_comes_in_pages_complete_and_nothing_twice(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(violations, "PAGE", 2)
    for number in range(5):
        keep(api, f"stray{number}")
        keep(api, f"other{number}", team="speech")
    seen: list[str] = []
    token = None
    while True:
        answer = api.get("/violations", **({"next_token": token} if token else {})).json
        assert len(answer["violations"]) <= 2
        seen += [record["training_job_name"] for record in answer["violations"]]
        token = answer["next_token"]
        if token is None:
            break
        last = token
    assert seen == [f"stray{number}" for number in range(5)]
    for user, query in ((BOB, {}), (ADA, {"month": "2026-10"})):
        assert api.get("/violations", user=user, next_token=last, **query).status == 400


def test_a_month_that_is_nearly_all_others_is_left_off_and_taken_up_again(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(violations, "_MAX_READ", 3)
    for number in range(4):
        keep(api, f"other{number}", team="speech")
    keep(api, "stray")
    first = api.get("/violations").json
    assert first["violations"] == []
    assert names(api, next_token=first["next_token"]) == ["stray"]


def test_a_record_judged_anew_is_one_record(api: Api) -> None:
    keep(api, "stray", outcome=Outcome.AUDITED)
    (before,) = api.reader.violations("2026-11", after=None, limit=9)
    api.store.record_violation(replace(before, outcome=Outcome.STOPPED, revision=2), replaces=before)
    (record,) = api.get("/violations").json["violations"]
    assert record["outcome"] == "stopped"
