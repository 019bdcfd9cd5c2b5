"""A job as a small page: every text is text, the curve is of numbers alone, and nothing grows without end."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from trainmaster_client.handles.job_picture import (
    MOST_POINTS,
    MOST_ROWS,
    JobPicture,
    html,
    svg,
    table,
    text,
    thinned,
)
from trainmaster_client.jobs.job_views import job_view
from trainmaster_client.views.queue_model import job_rows
from trainmaster_client.views.queue_rows import Row

from tests.integration.client.fake_api import view

START = datetime(2026, 11, 23, 8, 40, tzinfo=UTC)
HOSTILE = ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "\x1b[31mred\x00", "&lt;b&gt;")


NOW = datetime(2026, 11, 21, 3, tzinfo=UTC)


def seen(**fields: Any) -> Row:
    return job_rows([job_view(view(**fields))], now=NOW)[0]


def test_a_waiting_job_says_where_it_is_why_and_when() -> None:
    found = JobPicture(row=seen(), likely_start=START)
    assert text(found) == (
        "job1: pending; default in p5; position 3; priority 1; 1x ml.p5.48xlarge; age 2h00m; "
        "capacity: needs 1 ml.p5.48xlarge, 0 are free; likely start 2026-11-23 08:40 UTC"
    )
    page = html(found)
    assert "<b>job1</b> pending" in page
    assert "<div>likely start 2026-11-23 08:40 UTC</div>" in page
    assert "<svg" not in page


def test_a_job_that_waits_for_others_names_them_with_their_states() -> None:
    after: list[dict[str, Any]] = [
        {"job": f"prep-{number}", "type": "afterany", "state": "running"} for number in range(7)
    ]
    after[0] = {"job": None, "type": "afterok", "state": "held"}
    line = text(JobPicture(row=seen(after=after, position=None)))
    assert "; after (other team's) (held), afterany:prep-1 (running), " in line
    assert "afterany:prep-4 (running) and 2 more; " in line
    assert "after" not in text(JobPicture(row=seen(after=after, state="running", position=None)))


def test_a_running_job_has_its_loss_and_no_start() -> None:
    curves = {0: [(10.0, 4.0), (20.0, 3.0)], 1: [(20.0, 3.1), (30.0, 2.5)]}
    found = JobPicture(row=seen(state="running", position=None, attempt=1), likely_start=START, curves=curves)
    assert text(found).endswith("attempt 1; age 2h00m; newest loss 2.5 at step 30")
    page = html(found)
    assert "likely start" not in page
    lines = re.findall(r'<polyline points="([^"]+)" fill="none" stroke="(#\w+)"', page)
    assert [line.count(",") for line, _ in lines] == [2, 2]
    assert len({colour for _, colour in lines}) == 2
    assert re.findall(r"<text[^>]*>([^<]*)</text>", page) == ["2.5", "4", "10", "30"]


def test_the_curve_falls_when_the_loss_falls_and_stays_in_its_frame() -> None:
    points = re.findall(
        r"([\d.]+),([\d.]+)", re.findall(r'points="([^"]+)"', svg({0: [(0, 9), (5, 1), (9, 2)]}))[0]
    )
    (x0, y0), (x1, y1), (x2, y2) = [(float(x), float(y)) for x, y in points]
    assert x0 < x1 < x2 <= 480
    assert y0 < y2 < y1 <= 150


@pytest.mark.parametrize("curves", [{}, {0: []}, {0: [(1.0, 2.0)]}])
def test_there_is_no_curve_before_there_are_two_points(curves: dict[int, list[tuple[float, float]]]) -> None:
    assert svg(curves) == ""


def test_equal_losses_are_a_line_in_the_middle() -> None:
    assert re.findall(r'points="([^"]+)"', svg({0: [(1, 2), (3, 2)]})) == ["56.0,70.0 476.0,70.0"]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_whatever_a_name_or_a_reason_holds_is_text(hostile: str) -> None:
    job = seen(name=hostile, pool=hostile, team=hostile, waiting={"code": hostile, "message": hostile})
    for page in (html(JobPicture(row=job, note=hostile)), table([job])):
        assert "<script" not in page
        assert "<img" not in page
        assert "&amp;lt;b" in page or "&lt;b&gt;" not in page
        assert page.isprintable()


def test_a_long_curve_is_thinned_and_keeps_its_newest_point() -> None:
    curve = [(float(step), 1.0) for step in range(10_007)]
    kept = thinned(curve)
    assert len(kept) <= MOST_POINTS + 1
    assert (kept[0], kept[-1]) == (curve[0], curve[-1])
    assert len(svg(dict.fromkeys(range(50), curve))) < 120_000


def test_many_jobs_are_a_table_with_a_bound() -> None:
    page = table([seen()] * (MOST_ROWS + 5))
    assert page.count("<tr>") == MOST_ROWS + 1
    assert "<div>5 more</div>" in page
