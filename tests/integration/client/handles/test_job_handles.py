"""Handles on jobs over the fake API: what they ask, what they show, and how they are waited for."""

import asyncio
import builtins
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
import trainmaster_client
from botocore.exceptions import ClientError
from moto import mock_aws
from trainmaster_client.api import ApiClient
from trainmaster_client.errors import InvalidArgumentError, NotFoundError, PolicyViolationError
from trainmaster_client.handles import Job, job, jobs, submit

from tests.integration.client.fake_api import (
    ACCESS_KEY,
    REGION,
    REQUEST,
    SECRET_KEY,
    FakeApi,
    Scripted,
    history,
    running_fake_api,
    view,
)
from tests.unit.client.cloudwatch_logs import TrainingLogs

ATTEMPT = {"attempt": 0, "training_job_name": "job1", "status": "InProgress"}


@pytest.fixture(scope="module")
def server() -> Iterator[FakeApi]:
    with running_fake_api() as api:
        yield api


@pytest.fixture
def api(server: FakeApi) -> FakeApi:
    server.forget()
    return server


SESSION = boto3.Session(ACCESS_KEY, SECRET_KEY, region_name=REGION)


def where(api: FakeApi) -> dict[str, Any]:
    return {"api_url": api.url, "boto_session": SESSION}


def seen(**fields: Any) -> Scripted:
    return Scripted(document=view(**fields))


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class NoLogs:
    def describe_log_streams(self, **_: Any) -> dict[str, Any]:
        return {}


def handle(api: FakeApi, clock: Clock, *, logs: Any = None, **fields: Any) -> Job:
    client = ApiClient(api.url, SESSION)
    make = (lambda: logs) if logs is not None else NoLogs
    return Job(client, view(**fields), make_logs=make, monotonic=clock, sleep=clock.sleep)


def test_a_submitted_job_is_a_handle(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    warning = {"field": "Tags", "message": "lack model_name", "hint": "add it"}
    api.script("POST", "/add-job", Scripted(status=201, document={"job": view(), "warnings": [warning]}))
    found = submit(REQUEST, **where(api))
    assert (found.name, found.state) == ("job1", "pending")
    assert "lack model_name" in capsys.readouterr().out
    assert repr(found).startswith("job1: pending; ")


def test_a_refusal_raises_as_the_api_client_does(api: FakeApi) -> None:
    api.script(
        "POST", "/add-job", Scripted(status=422, document={"title": "No", "detail": "no", "errors": []})
    )
    with pytest.raises(PolicyViolationError):
        submit(REQUEST, **where(api))
    with pytest.raises(NotFoundError):
        job("nobody", **where(api))


def test_to_print_a_handle_asks_nothing(api: FakeApi) -> None:
    found = handle(api, Clock())
    assert str(found) == repr(found) != ""
    assert api.calls() == []


def test_a_picture_asks_for_the_job_and_its_start_and_soon_again_for_nothing(api: FakeApi) -> None:
    clock = Clock()
    api.script("GET", "/jobs/job1", seen(estimated_start={"p50": "2026-11-23T08:40:00Z", "p90": None}))
    found = handle(api, clock)
    bundle = found._repr_mimebundle_()
    assert bundle.keys() == {"text/plain", "text/html"}
    assert "likely start 2026-11-23 08:40 UTC" in bundle["text/html"]
    assert found._repr_mimebundle_() == bundle
    clock.now += 5
    found._repr_mimebundle_()
    assert [one.query for one in api.received] == [{}, {"estimate": ["false"]}]


def test_an_api_that_is_away_leaves_the_picture_and_says_so(api: FakeApi) -> None:
    api.script("GET", "/jobs/job1", Scripted(status=404, document={"title": "Not found", "detail": "gone"}))
    page = handle(api, Clock())._repr_mimebundle_()["text/html"]
    assert "<b>job1</b> pending" in page
    assert "note: as last seen:" in page


@mock_aws  # type: ignore[untyped-decorator]
def test_the_loss_is_read_from_the_metric_lines_of_each_attempt(api: FakeApi) -> None:
    logs = TrainingLogs()
    logs.write(
        "job1/algo-1-1",
        (1, "metric step=10 loss=4.5 lr=1e-4"),
        (2, "<b>step</b>"),
        (3, "metric step=20 loss=3.25"),
        (4, "metric step=30 lr=1e-4"),
    )
    logs.write("job1/algo-2-1", (2, "metric step=15 loss=99"))
    api.script("GET", "/jobs/job1", seen(state="running", attempts=[ATTEMPT]))
    page = handle(api, Clock(), logs=logs.client)._repr_mimebundle_()["text/html"]
    assert "newest loss 3.25 at step 20" in page
    assert page.count("<polyline") == 1
    assert "99" not in page.partition("<svg")[2]


def test_a_log_that_may_not_be_read_is_a_note(api: FakeApi) -> None:
    class Denied:
        def describe_log_streams(self, **_: Any) -> Any:
            raise ClientError(
                {"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "DescribeLogStreams"
            )

    api.script("GET", "/jobs/job1", seen(state="running", attempts=[ATTEMPT]))
    page = handle(api, Clock(), logs=Denied())._repr_mimebundle_()["text/html"]
    assert "note: the log cannot be read:" in page


def test_a_wait_outside_of_a_notebook_prints_what_fit_prints(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = history(("pending", 0, ""), ("running", 0, ""), ("completed", 0, ""))
    api.script(
        "GET",
        "/jobs/job1",
        seen(history=steps[:1]),
        seen(state="running", history=steps[:2]),
        seen(state="completed", history=steps),
    )
    clock = Clock()
    end = handle(api, clock).wait()
    assert end.state == "completed"
    printed = capsys.readouterr().out
    assert "Waiting, position 3 in pool p5" in printed
    assert printed.rstrip().endswith("Completed")
    assert 2.4 <= clock.now <= 3.0, "2 s behind two others, 1 s once it runs, each up to a fifth less"
    assert all(one.query == {"estimate": ["false"]} for one in api.received)


def test_a_wait_with_a_limit_comes_back_with_what_was_seen_last(api: FakeApi) -> None:
    api.script("GET", "/jobs/job1", seen())
    clock = Clock()
    assert handle(api, clock).wait(timeout=5).state == "pending"
    assert 5 <= clock.now < 7


def test_a_job_can_be_awaited_beside_others(api: FakeApi) -> None:
    api.script("GET", "/jobs/job1", seen(state="failed"))

    async def both() -> list[str]:
        views = await asyncio.gather(*(wait(handle(api, Clock())) for _ in range(2)))
        return [one.state for one in views]

    async def wait(one: Job) -> Any:
        return await one

    assert asyncio.run(both()) == ["failed", "failed"]


def test_jobs_lists_those_with_a_name_page_by_page(api: FakeApi) -> None:
    pages = [
        Scripted(document={"jobs": [view("a"), view(None)], "next_token": "t"}),
        Scripted(document={"jobs": [view("b"), view("c")], "next_token": None}),
    ]
    api.script("GET", "/jobs", *pages)
    found = jobs(**where(api), team="vision")
    assert [one.name for one in found] == ["a", "b", "c"]
    assert [one.query for one in api.received] == [
        {"team": ["vision"], "limit": ["100"]},
        {"team": ["vision"], "limit": ["100"], "next_token": ["t"]},
    ]
    assert (found.truncated, found[1:][0].name, len(found[:2])) == (False, "b", 2)
    assert found._repr_html_().count("<tr>") == 4
    assert repr(found).count("pending") == 3


def test_a_limit_is_kept_and_said(api: FakeApi) -> None:
    api.script("GET", "/jobs", Scripted(document={"jobs": [view("a"), view("b")], "next_token": None}))
    found = trainmaster_client.jobs(**where(api), limit=1)
    assert ([one.name for one in found], found.truncated) == (["a"], True)
    assert repr(found).endswith("...")
    with pytest.raises(InvalidArgumentError, match="limit"):
        jobs(**where(api), limit=1001)


def test_a_frame_has_a_row_a_job(api: FakeApi) -> None:
    api.script("GET", "/jobs", Scripted(document={"jobs": [view("a"), view("b")], "next_token": None}))
    frame = jobs(**where(api)).to_frame()
    assert list(frame["name"]) == ["a", "b"]
    assert frame.loc[0, "why"] == "capacity: needs 1 ml.p5.48xlarge, 0 are free"
    assert frame["submitted_at"].dt.year.tolist() == [2026, 2026]


def test_a_frame_of_no_jobs_has_its_columns(api: FakeApi) -> None:
    api.script("GET", "/jobs", Scripted(document={"jobs": [], "next_token": None}))
    found = jobs(**where(api))
    assert {"name", "state", "pool"} <= set(found.to_frame().columns)
    assert repr(found) == "no jobs"


def test_without_pandas_the_error_says_what_to_install(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    api.script("GET", "/jobs", Scripted(document={"jobs": [view("a")], "next_token": None}))
    real = builtins.__import__

    def without(name: str, *rest: Any, **named: Any) -> Any:
        if name == "pandas":
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InvalidArgumentError, match="pip install pandas"):
        jobs(**where(api)).to_frame()


def test_whichever_import_comes_first_the_function_and_the_room_are_there() -> None:
    program = (
        "import trainmaster_client as t, sys\n"
        "assert 'boto3' not in sys.modules\n"
        "from trainmaster_client.jobs.job_views import JobView\n"
        "assert callable(t.jobs) and callable(t.job) and callable(t.submit)\n"
        "assert not {'pandas', 'IPython'} & sys.modules.keys()\n"
        "assert not hasattr(t, 'nothing')\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
