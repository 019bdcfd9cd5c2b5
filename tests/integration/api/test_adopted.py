"""Adopted jobs over the API: listed like others, also those without a pool and without a team."""

from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle import steps
from trainmaster.core.records import Adoption
from trainmaster.core.rules.violation import Outcome, ViolationRecord

from tests.builders import NOON, attempt, live_job, of, seen
from tests.ends import observed
from tests.integration.api.conftest import ADA, ADMIN, BOB, P5, Api

GROUP = "unmanaged"
NO_CAPACITY = seen(
    "poolless", status="Failed", secondary="Failed", ended_at=NOON, failure_reason="CapacityError: none"
)


def adopt(api: Api, name: str, *, team: str = "vision", pool: str = "p5", instance_type: str = P5) -> None:
    live = attempt(name, month="2026-11")
    job = live_job(
        name, live=live, team=team, pool=pool, vector=of(1, instance_type), preemptible=False, entry_id=name
    )
    record = ViolationRecord(
        at=NOON,
        training_job_name=name,
        team=team,
        role_arn="arn:x",
        unmanaged=True,
        outcome=Outcome.ADOPTED,
    )
    note = Reason(code=ReasonCode.ADOPTED, message="found running")
    api.store.adopt(Adoption(job=job, body=b"{}", note=note, record=record, policy_version=1), at=NOON)


def test_an_adopted_job_is_shown_with_its_story(api: Api) -> None:
    adopt(api, "stray")
    view = api.get("/jobs/stray").json
    assert (view["state"], view["attempt"], view["training_job_name"]) == ("running", 0, "stray")
    assert [(line["to"], line["reason"]["code"]) for line in view["history"]] == [("running", "adopted")]
    assert [one["attempt"] for one in view["attempts"]] == [0]


def test_jobs_without_a_pool_come_last_and_can_be_asked_for(api: Api) -> None:
    adopt(api, "poolless", pool="-", instance_type="ml.m5.large")
    adopt(api, "stray")
    api.submit("waits")
    assert api.names() == ["stray", "waits", "poolless"]
    assert api.names(pool="-") == ["poolless"]
    assert [pool["name"] for pool in api.get("/pools").json["pools"]] == ["p5", "g5"]


def test_a_job_without_a_pool_can_be_ranked_held_back_and_cancelled(api: Api) -> None:
    adopt(api, "poolless", pool="-", instance_type="ml.m5.large")
    assert api.call("PATCH", "/jobs/poolless", {"priority": 7}).json["priority"] == 7
    assert api.call("PATCH", "/jobs/poolless", {"held": True}).status == 409
    assert api.call("DELETE", "/jobs/poolless").status == 202
    assert api.wake_ups.pools[-1] == "-"


def test_one_that_waits_without_a_pool_starts_with_the_next_pass(api: Api) -> None:
    adopt(api, "poolless", pool="-", instance_type="ml.m5.large")
    change = observed(api.job("poolless"), NO_CAPACITY, now=NOON)
    assert change is not None
    (waits,) = api.store.commit([change], at=NOON)
    api.change("poolless", steps.unparked(waits))
    view = api.get("/jobs/poolless").json
    assert (view["state"], view["waiting"]["code"]) == ("pending", "ahead")
    assert view["waiting"]["message"].startswith("it starts with the next pass")
    assert view["estimated_start"] is not None


def test_G6_jobs_of_nobody_are_the_admins_business(api: Api) -> None:
    adopt(api, "stray", team=GROUP)
    for user in (ADA, BOB):
        assert api.names(user=user) == [None]
        assert api.get("/jobs/stray", user=user).status == 404
        assert api.call("DELETE", "/jobs/stray", user=user).status == 404
        assert api.call("PATCH", "/jobs/stray", {"priority": 1}, user=user).status == 404
    assert api.names(user=ADMIN) == ["stray"]
    assert api.call("DELETE", "/jobs/stray", user=ADMIN).status == 202


def test_finished_jobs_of_nobody_are_listed_for_admins(api: Api) -> None:
    adopt(api, "stray", team=GROUP)
    api.end("stray")
    assert api.names(user=ADMIN, state="completed") == ["stray"]
    assert api.names(user=ADA, state="completed") == [None]
