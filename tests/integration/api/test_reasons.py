"""Every job that waits has a reason with a number or a name in it, wherever it stands."""

import re
from datetime import timedelta
from typing import Any

import pytest
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle import steps

from tests.integration.api.conftest import ADA, ADMIN, ON_G5, Api

CODES = {
    "ahead",
    "capacity",
    "quota",
    "budget",
    "held",
    "backoff",
    "reservation",
    "account-limit",
    "paused",
}


def waits(api: Api, name: str) -> dict[str, str]:
    """The reason, the same by name and in the list."""
    reason = api.get(f"/jobs/{name}").json["waiting"]
    (listed,) = (job for job in api.get("/jobs", limit="100").json["jobs"] if job["name"] == name)
    assert listed["waiting"] == reason
    assert reason["code"] in CODES
    found: dict[str, str] = reason
    return found


@pytest.fixture
def full(api: Api) -> Api:
    """Both instances of pool p5 taken."""
    for name in ("one", "two"):
        api.submit(name, priority=5)
        api.start(name)
    return api


def test_the_first_that_does_not_fit_says_what_is_missing(full: Api) -> None:
    full.submit("a")
    assert waits(full, "a") == {
        "code": "capacity",
        "message": "needs ml.p5.48xlarge=1, free ml.p5.48xlarge=0",
    }


def test_the_next_ones_name_the_job_ahead(full: Api) -> None:
    for name in ("a", "b"):
        full.submit(name)
    assert waits(full, "b")["code"] == "ahead"
    assert waits(full, "b")["message"].startswith("a is ahead and waits for ml.p5.48xlarge=1")


@pytest.mark.thorough
def test_far_behind_the_first_a_job_is_told_how_many_are_ahead(full: Api) -> None:
    for number in range(66):
        full.submit(f"job-{number:02d}")
    assert waits(full, "job-65") == {"code": "ahead", "message": "65 jobs are ahead in this pool"}


def test_a_job_that_fits_is_about_to_start(api: Api) -> None:
    api.submit("a")
    assert waits(api, "a") == {
        "code": "ahead",
        "message": "it starts with the next pass, within a minute",
    }


@pytest.mark.thorough
def test_what_a_pass_wrote_long_ago_does_not_outlive_the_order(full: Api) -> None:
    for number in range(66):
        full.submit(f"job-{number:02d}", priority=1)
    stale = Reason(code=ReasonCode.CAPACITY, message="needs 1")
    full.change("job-65", steps.explained(full.job("job-65"), stale))
    assert waits(full, "job-65")["message"] == "65 jobs are ahead in this pool"


def test_a_pause_is_everybodys_reason(full: Api) -> None:
    for number in range(10):
        full.submit(f"job-{number}")
    full.call("PUT", "/policy/paused", {"paused": True}, user=ADMIN)
    assert {waits(full, f"job-{number}")["code"] for number in (0, 9)} == {"paused"}
    assert re.search("[0-9]", waits(full, "job-9")["message"])


def test_a_backoff_says_until_when(api: Api) -> None:
    api.submit("a")
    until = api.put_back("a").not_before
    assert until is not None
    reason = waits(api, "a")
    assert reason["code"] == "backoff"
    assert f"{until:%Y-%m-%dT%H:%M:%S}" in reason["message"]
    api.now += timedelta(hours=1)
    assert "it is tried again within a minute" in waits(api, "a")["message"]


def test_a_hold_says_who_and_since_when_even_while_paused(api: Api) -> None:
    api.submit("a")
    api.call("PATCH", "/jobs/a", {"held": True})
    api.call("PUT", "/policy/paused", {"paused": True}, user=ADMIN)
    assert waits(api, "a") == {"code": "held", "message": f"held by {ADA} since 2026-11-02T12:00:00.000Z"}


def test_the_answer_to_a_submission_has_a_reason_too(full: Api) -> None:
    job: dict[str, Any] = full.submit("a").json["job"]
    assert job["waiting"] == {
        "code": "ahead",
        "message": "it is first in line; the next pass decides about it, within a minute",
    }
    assert full.submit("b", ResourceConfig=ON_G5).json["job"]["waiting"]["code"] == "ahead"
