"""GET /usage grouped: by team, user, job, day and model; of all teams; as CSV."""

import csv
import io
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from trainmaster.api import usage_groups
from trainmaster.core.costs.ledger import Cause
from trainmaster.core.jobs.index_sets import TaskOf

from tests.bodies import body, tag_list
from tests.integration.api.conftest import ADA, ADMIN, BOB, OWN, Answer, Api
from tests.integration.api.test_usage import spend

GRACE = f"arn:aws:sts::{OWN}:assumed-role/vision-lead/grace"
CSV = {"accept": "text/csv"}


def sums(answer: Answer) -> dict[str | None, float]:
    assert answer.status == 200, answer
    return {group["key"]: group["usd"] for group in answer.json["groups"]}


def as_csv(api: Api, *, user: str = ADA, **query: Any) -> list[dict[str, str]]:
    answer = api.call("GET", "/usage", user=user, query=query, headers=CSV)
    assert (answer.status, answer.content_type) == (200, "text/csv")
    return list(csv.DictReader(io.StringIO(answer.text)))


def with_model(api: Api, name: str, model: str | None, **parameters: str) -> None:
    """A job that says what it trains, in a tag or in a hyperparameter."""
    tags = tag_list({"model_name": model} if model else {})
    api.call("POST", "/add-job", body(TrainingJobName=name, Tags=tags, HyperParameters=parameters), user=ADA)
    spend(api, name)


def test_users_of_a_team_are_summed_up(api: Api) -> None:
    spend(api, "a", hours=2)
    spend(api, "b", hours=1)
    spend(api, "c", hours=4, user=GRACE)
    answer = api.get("/usage", group_by="user")
    assert sums(answer) == {ADA: 30.0, GRACE: 40.0}
    assert (answer.json["from"], answer.json["to"]) == (
        "2026-11-01T00:00:00.000Z",
        "2026-12-01T00:00:00.000Z",
    )
    assert (answer.json["group_by"], answer.json["truncated"], answer.json["next_token"]) == (
        "user",
        False,
        None,
    )
    assert answer.json["total"]["usd"] == 70.0
    assert answer.json["groups"][0]["by"]["productive"] == 30.0


def test_all_teams_are_for_admins(api: Api) -> None:
    spend(api, "a")
    spend(api, "b", hours=3, user=BOB)
    assert sums(api.get("/usage", user=ADMIN, team="*")) == {"speech": 30.0, "vision": 10.0}
    assert sums(api.get("/usage", user=ADMIN, team="*", group_by="job")) == {"a": 10.0, "b": 30.0}
    assert api.get("/usage", team="*").status == 403


def test_nobody_sees_the_money_of_another_team(api: Api) -> None:
    spend(api, "secret", user=BOB)
    for group_by in ("team", "user", "job", "day", "model_name"):
        assert api.get("/usage", group_by=group_by, team="speech").status == 403
        assert sums(api.get("/usage", group_by=group_by)) == {}


def test_a_job_counts_on_the_day_it_ended(api: Api) -> None:
    spend(api, "a", hours=2)
    api.now += timedelta(hours=11)
    spend(api, "b", hours=2)
    assert sums(api.get("/usage", group_by="day")) == {"2026-11-02": 20.0, "2026-11-03": 20.0}


def test_a_time_takes_the_jobs_that_ended_in_it_whatever_month_they_began_in(api: Api) -> None:
    api.now = api.now.replace(month=11, day=30, hour=23)
    spend(api, "over-the-end", hours=2)
    api.now = api.now.replace(month=12, day=1, hour=12)
    spend(api, "later", hours=1)
    december = {"from": "2026-12-01", "to": "2026-12-02T00:00:00Z", "group_by": "job"}
    assert sums(api.get("/usage", **december)) == {"later": 10.0, "over-the-end": 20.0}
    first_hours = december | {"to": "2026-12-01T06:00:00+00:00"}
    assert sums(api.get("/usage", **first_hours)) == {"over-the-end": 20.0}
    assert sums(api.get("/usage", **december | {"from": "2026-11-30", "to": "2026-12-01"})) == {}


def test_models_are_told_by_a_tag_else_by_a_hyperparameter(api: Api) -> None:
    with_model(api, "a", "llama")
    with_model(api, "b", "llama", model_name="other")
    with_model(api, "c", None, model_name="vit")
    with_model(api, "d", None)
    assert sums(api.get("/usage", group_by="model_name")) == {"llama": 20.0, "vit": 10.0, None: 10.0}


def test_a_price_that_is_not_known_is_not_known_in_its_group_and_in_the_total(api: Api) -> None:
    spend(api, "a")
    spend(api, "b", usd_per_hour=None)
    answer = api.get("/usage", group_by="job")
    assert sums(answer) == {"a": 10.0, "b": None}
    assert (answer.json["total"]["usd"], answer.json["total"]["known_usd"]) == (None, 10.0)


def test_csv_has_a_head_line_and_a_line_a_group(api: Api) -> None:
    spend(api, "a", hours=2)
    spend(api, "b", usd_per_hour=None)
    lines = as_csv(api, group_by="job")
    assert [(line["key"], line["instance_hours"], line["usd"], line["productive"]) for line in lines] == [
        ("a", "2.0", "20.0", "20.0"),
        ("b", "1.0", "", ""),
    ]
    assert as_csv(api) == lines


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@sum"])
def test_a_cell_that_a_spreadsheet_would_run_is_text(api: Api, name: str) -> None:
    with_model(api, "a", None, model_name=name)
    assert [line["key"] for line in as_csv(api, group_by="model_name")] == [f"'{name}"]


def test_what_begins_with_a_tab_is_text_too() -> None:
    view = {"key": "\t=1", "instance_hours": 1, "usd": 1, "saved_usd": 0, "by": {}}
    view["by"] = dict.fromkeys((cause.value for cause in Cause), 0)
    (line,) = csv.DictReader(io.StringIO(usage_groups.csv_text([view])))
    assert line["key"] == "'\t=1"


def test_more_jobs_than_one_answer_reads_are_summed_up_without_a_key(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage_groups, "MOST_JOBS", 1)
    spend(api, "a")
    spend(api, "b", hours=2)
    answer = api.get("/usage", group_by="user")
    assert sums(answer) == {ADA: 10.0, None: 20.0}
    assert answer.json["truncated"]
    cut = api.call("GET", "/usage", query={"group_by": "user"}, headers=CSV)
    assert cut.headers["trainmaster-truncated"] == "true"


def test_groups_come_in_pages_and_the_total_is_of_all(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "c"):
        spend(api, name)
    monkeypatch.setattr("trainmaster.api.paging.MOST_BYTES", 300)
    keys: list[str] = []
    token: dict[str, str] = {}
    for _ in range(4):
        page = api.get("/usage", group_by="job", **token).json
        assert page["total"]["usd"] == 30.0
        keys += [group["key"] for group in page["groups"]]
        if page["next_token"] is None:
            break
        token = {"next_token": page["next_token"]}
    assert keys == ["a", "b", "c"]
    assert api.get("/usage", group_by="user", **token).fields == ["query.next_token"]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        pytest.param({"group_by": "users"}, "query.group_by", id="nothing to group by"),
        pytest.param({"from": "2026-11-01", "month": "2026-11"}, "query.month", id="a time and a month"),
        pytest.param({"from": "2026-10-01", "to": "2026-11-02"}, "query.from", id="more than 31 days"),
        pytest.param({"from": "2026-11-02", "to": "2026-11-01"}, "query.from", id="backwards"),
        pytest.param({"from": "soon"}, "query.from", id="no time"),
        pytest.param({"team": "vison", "group_by": "day"}, "query.team", id="no team"),
        pytest.param({"pool": "p5"}, "query.pool", id="unknown"),
    ],
)
def test_a_parameter_that_is_not_valid_is_named(api: Api, query: dict[str, str], field: str) -> None:
    assert api.get("/usage", **query).fields == [field]


def test_arrays_are_summed_up_and_other_jobs_have_no_key(api: Api) -> None:
    spend(api, "alone", hours=2)
    names = {"sweep-3": 3, "sweep-5": 5}
    for name in names:
        spend(api, name, hours=1)
    for position, (name, index) in enumerate(names.items()):
        job, task = api.job(name), TaskOf(name="sweep", index=index, position=position)
        api.change(name, replace(job, spec=replace(job.spec, array=task)))

    assert sums(api.get("/usage", group_by="array")) == {"sweep": 20.0, None: 20.0}
