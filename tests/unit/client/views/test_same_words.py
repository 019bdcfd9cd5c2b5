"""Every view says the same of the same job: state, instances, position, priority, reason, likely start."""

import asyncio
import csv
import io
from collections.abc import Callable, Iterator
from datetime import timedelta
from html import escape, unescape
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from trainmaster.core.jobs.instances import Capacity
from trainmaster.core.jobs.model import FINAL, LIVE, JobState
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.jobs.row_words import WAITS_FOR
from trainmaster.widget.page import html as widget_page
from trainmaster.widget.queue_picture import PoolPicture, QueueLine, QueuePicture
from trainmaster_client.api import ApiClient
from trainmaster_client.cli.queue_table import print_queue_csv, queue_picture
from trainmaster_client.cli.screen import UNLIMITED_COLUMNS, print_whole
from trainmaster_client.dashboard.queue_data import QueueData
from trainmaster_client.handles.job_picture import JobPicture, html, table, text
from trainmaster_client.views.queue_model import QueueAnswers, QueueModel, queue_model

from tests.builders import NOON
from tests.integration.client.fake_api import view
from tests.unit.client.cli.full_screen import queue_screen
from tests.unit.client.cli.full_screen.queue_screen import FakeApi, shown

TYPE = "ml.p5.48xlarge"
NAMES = st.text(alphabet="abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1, max_size=20).map("j{}".format)
MESSAGES = st.text(alphabet="abc <>&'\"[]/:,", max_size=40).map(lambda text: f"needs {text.strip()}.")


@st.composite
def jobs(draw: st.DrawFn) -> dict[str, Any]:
    state = draw(st.sampled_from(sorted(JobState)))
    reason = {"code": draw(st.sampled_from(sorted(ReasonCode))), "message": draw(MESSAGES)}
    waits = state not in LIVE | FINAL
    return view(
        draw(NAMES),
        state=state,
        priority=draw(st.integers(0, 1000)),
        instances={TYPE: draw(st.integers(1, 64))},
        capacity_type=draw(st.sampled_from(["spot", "on-demand"])),
        position=draw(st.one_of(st.none(), st.integers(1, 1000))) if waits else None,
        waiting=reason if waits else None,
        reason=reason if state in FINAL else None,
        submitted_at=(NOON - timedelta(minutes=draw(st.integers(0, 10_000)))).isoformat(),
        started_at=None if waits else (NOON - timedelta(minutes=5)).isoformat(),
    )


def model(job: dict[str, Any]) -> QueueModel:
    return queue_model(QueueAnswers(document={"jobs": [job]}), now=NOON)


def drawn(found: QueueModel, width: int) -> str:
    out = io.StringIO()
    to = Console(file=out, width=width, no_color=True, markup=False, highlight=False)
    print_whole(queue_picture(found, to=to), to=to)
    return " ".join(out.getvalue().split())


def views(job: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What each view that has space for it shows of the job."""
    found = model(job)
    yield "queue into a pipe", drawn(found, UNLIMITED_COLUMNS)
    yield "queue on a narrow screen", drawn(found, 71)
    yield "notebook", unescape(html(JobPicture(row=found.rows[0])))
    yield "notebook's table", unescape(table(found.rows))
    yield "text of a handle", text(JobPicture(row=found.rows[0]))

    class Api(FakeApi):
        def estimates(self, **_: Any) -> dict[str, Any]:
            return {"estimates": []}

    data = QueueData(cast(ApiClient, Api(queue=[job])))
    (row,) = data.queue({"now": NOON.isoformat()}, now=NOON)["rows"]
    yield "dashboard", " ".join(row["cells"].values())


@settings(max_examples=60, deadline=None)
@given(job=jobs())
def test_all_views_say_the_same_of_a_job(job: dict[str, Any]) -> None:
    (row,) = model(job).rows
    for name, seen in views(job):
        words = " ".join(seen.split())
        for key in ("job", "state", "instances", "priority", "reason"):
            assert " ".join(row.cells[key].split()) in words, (name, key)
        if row.cells["position"] != "-":
            assert row.cells["position"] in words, name


@settings(max_examples=30, deadline=None)
@given(job=jobs())
def test_csv_is_of_the_same_facts(job: dict[str, Any]) -> None:
    (row,) = model(job).rows
    with pytest.MonkeyPatch.context() as patch:
        out = io.StringIO()
        patch.setattr("sys.stdout", out)
        print_queue_csv(model(job))
    (line,) = csv.DictReader(io.StringIO(out.getvalue()))
    assert (line["job"], line["state"], line["instances"]) == tuple(
        row.cells[key] for key in ("job", "state", "instances")
    )
    assert line["reason_code"] == row.code


def widget_row(job: dict[str, Any]) -> str:
    waits = job["state"] not in LIVE
    line = QueueLine(
        position=job["position"],
        job=job["name"],
        team=job["team"],
        state=JobState(job["state"]),
        instances={Capacity(TYPE): job["instances"][TYPE]},
        priority=job["priority"],
        since=NOON - timedelta(minutes=130),
        why=job["waiting"]["code"] if waits else "",
    )
    pool = PoolPicture(name="p5", capacity={}, lines=(line,))
    return widget_page(QueuePicture(at=NOON, paused=False, pools=(pool,), left_out=0), stack="prod")


@pytest.mark.parametrize("state", sorted(set(JobState) - FINAL))
@pytest.mark.parametrize("code", sorted(code for code in WAITS_FOR if code))
def test_the_widget_has_the_words_of_the_short_reason(state: str, code: str) -> None:
    """It knows neither names nor numbers, so a short reason that has some is shown without them."""
    why = {"code": code, "message": "the whole message"} if JobState(state) not in LIVE else None
    job = view(state=state, waiting=why, position=None)
    page, cells = widget_row(job), model(job).rows[0].cells
    assert f"<td>{escape(cells['short'])}</td>" in page
    assert f"<td>{cells['state']}</td><td>{cells['instances']}</td><td>{cells['priority']}</td>" in page


def played(lines: Callable[[], Any]) -> list[str]:
    return cast("list[str]", asyncio.run(lines()))


@pytest.mark.parametrize("state", ["running", "pending", "held", "preempted", "preempting"])
def test_top_draws_the_same_line_as_the_queue(state: str) -> None:
    position = 1 if state in {"pending", "preempted"} else None
    job = view("job1", state=state, position=position, started_at=None)

    async def lines() -> list[str]:
        async with shown(FakeApi(queue=[job])) as screen:
            return await screen.lines()

    (line,) = [line for line in played(lines) if line.startswith(("job1  ", "job1 d"))]
    answers = QueueAnswers(document={"jobs": [job]})
    assert " ".join(line.split()) in drawn(queue_model(answers, now=queue_screen.NOON), 79)
