"""A whole look at the queue as it is printed, pools and jobs. The picture stands in docs/cli.md."""

import io
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text
from trainmaster_client.cli.queue_table import queue_picture, summary_lines
from trainmaster_client.cli.screen import print_whole
from trainmaster_client.jobs.job_views import job_view
from trainmaster_client.jobs.start_estimates import StartEstimate
from trainmaster_client.views.queue_model import QueueAnswers, queue_model
from trainmaster_client.views.queue_rows import job_row
from trainmaster_client.views.short_reasons import QueueFacts

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
DOCUMENT = Path(__file__).parents[4] / "docs" / "cli.md"
POOLS: list[dict[str, Any]] = [
    {
        "name": "p5",
        "capacity": {"ml.p5.48xlarge": 2},
        "used": {"on-demand": {"ml.p5.48xlarge": 2}},
        "free": {"on-demand": {"ml.p5.48xlarge": 0}},
        "waiting": 2,
    },
    {
        "name": "g5",
        "capacity": {"ml.g5.12xlarge": 4},
        "spot_capacity": {"ml.g5.12xlarge": 8},
        "used": {"on-demand": {"ml.g5.12xlarge": 1}, "spot": {}},
        "free": {"on-demand": {"ml.g5.12xlarge": 1}},
        "warm": {"on-demand": {"ml.g5.12xlarge": 2}},
    },
]


def running(
    name: str | None, team: str, pool: str, since: str, ends_by: str, priority: int = 1
) -> dict[str, Any]:
    return {
        "name": name,
        "team": team,
        "pool": pool,
        "state": "running",
        "priority": priority,
        "instances": {"ml.p5.48xlarge": 1},
        "training_since": since,
        "ends_by": ends_by,
    }


def waiting(name: str | None, team: str, state: str, position: int, code: str | None) -> dict[str, Any]:
    return {
        "name": name,
        "team": team,
        "pool": "p5",
        "state": state,
        "position": position,
        "priority": 5,
        "instances": {"ml.p5.48xlarge": 1},
        "waiting": code and {"code": code, "message": "needs 1, 0 free"},
    }


def day(clock: str) -> str:
    return f"2026-11-21T{clock}:00Z"


JOBS = [
    running("pytorch-training-2026-11-21-11-48-02-417", "vision", "p5", day("11:48"), day("12:58"), 9),
    running(None, "language-models", "p5", day("10:30"), day("14:40")),
    waiting("pytorch-training-2026-11-21-09-15-44-120", "vision", "preempted", 1, "capacity"),
    waiting(None, "language-models", "pending", 2, None),
    running(
        "huggingface-pytorch-training-2026-11-21-11-02-31-090", "vision", "g5", day("11:05"), day("19:15")
    ),
]
STARTS = {
    ("p5", JOBS[2]["name"]): StartEstimate(p50=NOON + timedelta(minutes=40), p90=NOON + timedelta(hours=1)),
    ("p5", 2): StartEstimate(p50=NOON + timedelta(minutes=65), p90=NOON + timedelta(hours=3)),
}


def printed(width: int) -> str:
    answers = QueueAnswers(document={"jobs": JOBS}, pools=POOLS, starts=STARTS)
    model = queue_model(answers, now=NOON)
    out = io.StringIO()
    to = Console(file=out, width=width, no_color=True, markup=False, highlight=False)
    for line in [*summary_lines(model, width), Text()]:
        print_whole(line, to=to)
    print_whole(queue_picture(model, to=to), to=to)
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def test_the_picture_of_the_document_is_what_eighty_columns_show() -> None:
    assert f"```\n{printed(80)}```\n" in DOCUMENT.read_text()


def test_the_details_of_an_elastic_job_say_what_the_queue_says_of_its_width() -> None:
    document = running("wide", "vision", "p5", "2026-11-21T10:00:00Z", "2026-11-21T20:00:00Z")
    elastic = {"widths": [1, 2, 4], "width": 2, "wanted": 4, "why": "2 of 4 instances; it grows"}
    job = job_view(document | {"elastic": elastic})
    assert job.widths == (1, 2, 4)
    row = job_row(job, QueueFacts.of([job], POOLS), now=NOON)
    assert "2 of 4 instances; it grows" in row.details
