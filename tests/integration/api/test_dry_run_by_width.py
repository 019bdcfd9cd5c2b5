"""POST /add-job?dry_run=true of an elastic job: what each of its widths would take."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from trainmaster.api import build_api
from trainmaster.core.durations.work_speeds import MeasuredWidths, WorkSpeed

from tests.bodies import body
from tests.builders import seen
from tests.ends import observed
from tests.integration.api.conftest import DOCUMENT, P5, Api, throttled

USD = 63.296


@pytest.fixture
def pool(api: Api) -> Api:
    """A pool of four instances."""
    api.policies.put(
        {**DOCUMENT, "pools": [{"name": "p5", "capacity": {P5: 4}}]},
        pools=["p5", "g5"],
        replaces=api.policies.current(),
    )
    return api


def elastic(name: str = "wide", **fields: Any) -> dict[str, Any]:
    return body(
        TrainingJobName=name,
        ResourceConfig={"InstanceType": P5, "InstanceCount": 4, "VolumeSizeInGB": 30},
        Tags=[{"Key": "trainmaster:elastic", "Value": "1 2 4"}],
        **fields,
    )


def widths(api: Api) -> list[dict[str, Any]]:
    answer = api.call("POST", "/add-job", elastic(), query={"dry_run": "true"})
    assert (answer.status, answer.json["violations"]) == (200, [])
    found: list[dict[str, Any]] = answer.json["widths"]
    return found


def instants(found: list[dict[str, Any]], field: str) -> list[datetime]:
    return [datetime.fromisoformat(entry[field]["p50"]) for entry in found]


def ended_after(api: Api, trained: timedelta) -> None:
    """A job like it has trained at its largest width."""
    ends(api, elastic("earlier"), trained)


def ends(api: Api, request: dict[str, Any], trained: timedelta, **news: Any) -> None:
    name = request["TrainingJobName"]
    assert api.call("POST", "/add-job", request).status == 201
    job = api.start(name)
    times: dict[str, Any] = {"training_since": api.now, "ended_at": api.now + trained}
    change = observed(job, seen(name, status="Completed", **times, **news), now=api.now)
    assert change is not None
    api.store.commit([change], at=api.now)


def ran_at(api: Api, name: str, instances: int, per_second: float) -> None:
    """A job of the same program that was not elastic has trained with as many instances."""
    resources = {"InstanceType": P5, "InstanceCount": instances, "VolumeSizeInGB": 30}
    speed = WorkSpeed(unit="tokens", per_1000_s=round(1000 * per_second))
    ends(api, body(TrainingJobName=name, ResourceConfig=resources), timedelta(minutes=10), speed=speed)


def test_each_width_has_its_price_and_its_run_time(pool: Api) -> None:
    found = widths(pool)
    assert [entry["width"] for entry in found] == [4, 2, 1]
    assert [entry["max_runtime_s"] for entry in found] == [3600, 7200, 14400]
    assert [entry["usd_per_hour"] for entry in found] == pytest.approx([4 * USD, 2 * USD, USD])
    assert [entry["estimated_cost_usd"] for entry in found] == pytest.approx([4 * USD] * 3, abs=0.05)
    assert {(entry["training_hours"], entry["estimated_end"]) for entry in found} == {(None, None)}


def test_what_fits_now_starts_now_at_every_width(pool: Api) -> None:
    assert len(set(instants(widths(pool), "estimated_start"))) == 1


def test_a_width_that_does_not_fit_starts_later_than_one_that_does(pool: Api) -> None:
    pool.call("POST", "/add-job", body(TrainingJobName="other"))
    pool.start("other")
    wide, middle, least = instants(widths(pool), "estimated_start")
    assert middle == least < wide


def test_the_end_at_a_width_follows_from_jobs_like_it(pool: Api) -> None:
    ended_after(pool, timedelta(minutes=40))
    found = widths(pool)
    hours = [entry["training_hours"] for entry in found]
    assert hours[0] == pytest.approx(2 / 3, rel=0.06), "lengths are counted in classes"
    assert [hour / hours[0] for hour in hours] == pytest.approx([1, 1.8, 1.8**2], rel=0.02)
    ends, starts = instants(found, "estimated_end"), instants(found, "estimated_start")
    for hour, end, start in zip(hours, ends, starts, strict=True):
        assert (end - start) / timedelta(hours=1) == pytest.approx(hour, abs=0.01)
    costs = [entry["estimated_cost_usd"] for entry in found]
    assert costs == pytest.approx([hours[n] * USD * (4, 2, 1)[n] for n in range(3)], rel=0.02)
    assert costs == sorted(costs, reverse=True), "a narrow width is slower and cheaper"


def test_a_job_that_waits_for_others_has_no_start_at_any_width(pool: Api) -> None:
    pool.call("POST", "/add-job", body(TrainingJobName="parent"))
    asked = elastic()
    asked["Tags"] = [*asked["Tags"], {"Key": "trainmaster:after", "Value": "parent"}]
    found = pool.call("POST", "/add-job", asked, query={"dry_run": "true"}).json["widths"]
    assert [entry["estimated_start"] for entry in found] == [None, None, None]
    assert [entry["max_runtime_s"] for entry in found] == [3600, 7200, 14400]


def test_speeds_of_earlier_runs_replace_the_usual_speed_up(pool: Api) -> None:
    ended_after(pool, timedelta(minutes=40))
    ran_at(pool, "wide-1", 1, 1000.0)
    ran_at(pool, "wide-2", 2, 1500.0)
    ran_at(pool, "wide-3", 4, 1800.0)
    hours = [entry["training_hours"] for entry in widths(pool)]
    assert [hour / hours[0] for hour in hours] == pytest.approx([1, 1.2, 1.8], rel=0.02)
    assert pool.call("POST", "/add-job", elastic()).status == 201
    known = pool.job("wide").spec.widths
    assert known is not None
    speeds = (1_000_000, 1_500_000, 1_800_000)
    assert known.measured == MeasuredWidths(counts=(1, 2, 4), per_1000_s=speeds, runs=3)


def test_an_elastic_job_is_taken_without_speeds_while_their_rows_are_throttled(pool: Api) -> None:
    ran_at(pool, "wide-1", 1, 1000.0)
    ran_at(pool, "wide-2", 2, 1500.0)
    pool.handle = build_api(pool.outside(reader=throttled(pool)))
    assert pool.call("POST", "/add-job", elastic()).status == 201
    known = pool.job("wide").spec.widths
    assert known is not None
    assert known.measured is None
