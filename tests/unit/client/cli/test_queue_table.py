"""The queue on a wide and on a narrow screen."""

import io
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console
from trainmaster_client.cli.queue_table import queue_picture
from trainmaster_client.cli.screen import UNLIMITED_COLUMNS, print_whole
from trainmaster_client.jobs.start_estimates import StartEstimate
from trainmaster_client.views.fitted_tables import NARROWEST_TABLE
from trainmaster_client.views.queue_model import QueueAnswers, QueueModel, queue_model

NEEDS = "capacity: needs [2] ml.p5.48xlarge, 1 is free"
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
RUNNING: dict[str, Any] = {
    "name": "job1",
    "team": "vision",
    "pool": "p5",
    "state": "running",
    "priority": 1,
    "instances": {"ml.p5.48xlarge": 1},
    "submitted_at": "2026-11-21T11:00:00Z",
    "training_since": "2026-11-21T11:20:00Z",
    "ends_by": "2026-11-21T13:30:00Z",
    "attempt": 1,
}
MASKED: dict[str, Any] = {
    "name": None,
    "team": "speech",
    "pool": "p5",
    "state": "pending",
    "priority": 3,
    "instances": {"ml.p5.48xlarge": 2},
    "position": 1,
}
WAITING: dict[str, Any] = {
    "name": "job3",
    "team": "vision",
    "pool": "p5",
    "state": "pending",
    "priority": 0,
    "instances": {"ml.p5.48xlarge": 2},
    "capacity_type": "spot",
    "submitted_at": "2026-11-21T11:58:30Z",
    "position": None,
    "ahead_at_least": 1000,
    "attempt": 0,
    "waiting": {"code": "capacity", "message": "needs [2] ml.p5.48xlarge, 1 is free"},
}
START = StartEstimate(p50=NOON + timedelta(minutes=40), p90=NOON + timedelta(hours=2))
JOBS = [RUNNING, MASKED, WAITING]
STARTS: dict[tuple[str, str | int], StartEstimate] = {("p5", 1): START}


def model(jobs: list[dict[str, Any]], starts: dict[tuple[str, str | int], StartEstimate]) -> QueueModel:
    return queue_model(QueueAnswers(document={"jobs": jobs}, starts=starts), now=NOON)


def lines(shown: QueueModel, width: int, height: int | None = None) -> list[str]:
    out = io.StringIO()
    to = Console(file=out, width=width, no_color=True, markup=False, highlight=False)
    print_whole(queue_picture(shown, to=to, lines=height), to=to)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_a_pipe_gets_every_column_and_nothing_is_cut() -> None:
    shown = lines(model(JOBS, STARTS), UNLIMITED_COLUMNS)
    assert [line[:95] for line in shown] == [
        "JOB             TEAM    POOL  STATE    INSTANCES               PRIO    POS  ATTEMPT    AGE  RAN",
        "job1            vision  p5    running  1x ml.p5.48xlarge          1      -        1  1h00m  40m",
        "(other team's)  speech  p5    pending  2x ml.p5.48xlarge          3      1        -      -    -",
        "job3            vision  p5    pending  2x ml.p5.48xlarge spot     0  >1000        0  1m30s    -",
    ]
    assert [line[95:] for line in shown] == [
        "   LEFT       STARTS  REASON",
        "  1h30m            -",
        "      -  40m (2h00m)",
        "      -            -  " + NEEDS,
    ]


def test_a_stack_that_estimates_no_starts_has_no_column_for_them() -> None:
    to = Console(file=io.StringIO(), width=UNLIMITED_COLUMNS)
    shown = queue_model(QueueAnswers(document={"jobs": [RUNNING]}), now=NOON)
    print_whole(queue_picture(shown, to=to), to=to)
    assert "STARTS" not in to.file.getvalue()  # type: ignore[attr-defined]
    assert "REASON" in to.file.getvalue()  # type: ignore[attr-defined]


def test_sixty_columns_show_two_lines_a_job_with_team_and_pool() -> None:
    shown = lines(model(JOBS, STARTS), 60)
    assert max(len(line) for line in shown) <= 60
    assert shown == [
        "job1",
        "    vision in p5, running, priority 1, 1x ml.p5.48xlarge,",
        "    attempt 1, age 1h00m, ran 40m, at most 1h30m left",
        "(other team's)",
        "    speech in p5, pending, position 1, priority 3, 2x",
        "    ml.p5.48xlarge, likely to start in 40m",
        "job3",
        "    vision in p5, pending, position >1000, priority 0, 2x",
        "    ml.p5.48xlarge spot, age 1m30s, capacity: needs [2]",
        "    ml.p5.48xlarge, 1 is free",
    ]


SDK = "{}-training-2026-11-21-10-03-55-{}"
LONG_JOBS = [
    {
        **(RUNNING if number < 4 else WAITING),
        "name": SDK.format("huggingface-pytorch-llama" if number % 2 else "pytorch", 100 + number),
        "team": f"language-models-{number % 2}",
        "pool": f"research-p5-{number % 3}",
    }
    for number in range(8)
]
LONG = model(LONG_JOBS, {(job["pool"], job["name"]): START for job in LONG_JOBS[4:]})


@pytest.mark.parametrize("width", [NARROWEST_TABLE, 80, 90, 100, 120, 140, 160, 200])
def test_names_as_the_sdk_makes_them_fit_and_stay_apart(width: int) -> None:
    shown = lines(LONG, width)
    assert len(shown) == 1 + len(LONG.rows), "nothing wraps"
    assert max(map(cell_len, shown)) <= width
    assert shown[0].split()[:4] == ["JOB", "TEAM", "POOL", "STATE"]
    assert {"RAN", "LEFT", "STARTS", "REASON"} <= set(shown[0].split())
    rows = [line.split() for line in shown[1:]]
    assert len({row[0] for row in rows}) == len(LONG.rows)
    assert len({row[1] for row in rows}) == 2
    assert len({row[2] for row in rows}) == 3


def test_eighty_columns() -> None:
    shown = replace(LONG, rows=(LONG.rows[0], LONG.rows[1], LONG.rows[4]))
    assert lines(shown, 80) == [
        "JOB                TEAM      POOL      STATE   N       RAN  LEFT STARTS REASON",
        "pytorch-…03-55-100 lang…ls-0 rese…p5-0 running 1x      40m 1h30m      -",
        "huggingf…03-55-101 lang…ls-1 rese…p5-1 running 1x      40m 1h30m      -",
        "pytorch-…03-55-104 lang…ls-0 rese…p5-1 pending 2x spot   -     -    40m capacity",
    ]


HOSTILE = [
    "\x1b[31mred\x1b[0m",
    "[bold]markup[/bold] [link=http://x]",
    "abc\u202egnp.exe",
    "\u05e9\u05dc\u05d5\u05dd" * 9,
    "\u8a13\u7df4" * 20,
    "a\nb\tc\rd",
    "e\u0301" * 30,
    "\U0001f680" * 30,
]


@pytest.mark.parametrize("width", [60, 80, 120, UNLIMITED_COLUMNS])
@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_name_is_text_and_takes_the_cells_that_it_takes(text: str, width: int) -> None:
    reason = {"code": text, "message": text}
    view = {**WAITING, "name": text, "team": text, "pool": text, "state": text, "waiting": reason}
    shown = lines(model([view, *JOBS], STARTS), width)
    assert max(map(cell_len, shown)) <= width
    if width > 60:
        assert len(shown) == 5
    assert "".join(shown).isprintable()
    if text.startswith("["):
        assert "[" in "".join(shown[:3]), "markup is not read"


# ---- a terminal's height


@pytest.mark.parametrize(
    ("height", "more"),
    [
        pytest.param(9, None, id="all fit"),
        pytest.param(8, 2, id="one line too few"),
        pytest.param(4, 6, id="four lines"),
        pytest.param(1, 7, id="at least one job is shown"),
    ],
)
def test_what_does_not_fit_on_the_screen_is_counted(height: int, more: int | None) -> None:
    shown = lines(LONG, 100, height)
    if more is None:
        assert len(shown) == 9
    else:
        assert shown[-1] == f"... {more} more"
        assert len(shown) == 1 + (len(LONG.rows) - more) + 1


def test_a_narrow_screen_is_cut_between_jobs() -> None:
    shown = lines(LONG, 60, 7)
    assert shown[-1] == "... 7 more"
    assert len(shown) <= 7
