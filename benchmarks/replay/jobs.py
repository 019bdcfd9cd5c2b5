"""The jobs of a trace, with the pool, class, checkpoints and limit that the model gives each of them."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from trainmaster_client.simulate.histories.trace_draws import Klass, draw, drawn_checkpoints_s, drawn_class
from trainmaster_client.simulate.histories.trace_rows import TraceRow, read_rows
from trainmaster_client.simulate.sources.text_files import text_of

from benchmarks.replay.elasticity import Elasticity
from benchmarks.replay.requested_times import DEFAULT_S, MOST_S, Requests, requested_s

HOUR_S = 3600
DAY_S = 24 * HOUR_S
LONGEST_RUN_S = 5 * DAY_S
"""Run times are cut to this."""
WIDEST = 16
"""Instances of one job."""
MOST_SINGLE_GPUS = 2
"""A job of so many has them in instances of one GPU each."""


TRACE_FILES = (
    "CSV (job_id, submit_s, gpus, duration_s, vc, or shorter: id, submitted, seconds, gpus, group; further "
    "user, program), Standard Workload Format, or openb's list of tasks"
)
"""Files that can be replayed, for the help of an option."""
WEIGHTS: Mapping[Klass, int] = {Klass.HIGH: 8, Klass.NORMAL: 3, Klass.LOW: 1}
"""Weight of a job's delay in the weighted mean, by class."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """The instance that one pool is made of."""

    type: str
    gpus: int


POOLS: Mapping[str, Instance] = {
    "g1": Instance(type="ml.g5.xlarge", gpus=1),
    "g4": Instance(type="ml.g5.12xlarge", gpus=4),
    "g8": Instance(type="ml.g5.48xlarge", gpus=8),
}
"""Instances by the pool's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceJob:
    job_id: str
    team: str
    submit_s: int
    duration_s: int
    """Time it trains if it is never stopped. Deciders may not see this."""
    pool: str
    instances: int
    klass: Klass
    checkpoint_every_s: int | None
    """Seconds between checkpoints; None if the job saves nothing."""
    user: str | None = None
    """Name of the user; None if the trace has none: the team then counts as the user."""
    requested_s: int = MOST_S
    """Requested run time in seconds, its MaxRuntime."""
    breaks_after_s: int | None = None
    """Seconds of training after which the service fails once; the job continues in another attempt."""
    end: Literal["completed", "failed"] = "completed"
    """State of the job once it has trained that long."""
    elastic: Elasticity | None = None
    """Its further widths; ``instances`` and ``duration_s`` are those of the least. None: it is rigid."""

    @property
    def best_s(self) -> int:
        """Seconds that it trains at its largest width; of a rigid job all that it trains."""
        return self.duration_s if self.elastic is None else round(self.duration_s / self.elastic.most_speed)

    @property
    def gpus(self) -> int:
        return self.instances * POOLS[self.pool].gpus


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFile:
    rows: list[dict[str, str]]
    is_openb: bool
    """Whether it had openb's columns, and was converted."""
    is_workload_format: bool = False
    left_out: int = 0
    """Jobs without a run time: never placed, or still running when the trace was recorded."""


def read_trace(path: Path) -> list[dict[str, str]]:
    """Read rows with job_id, submit_s, gpus, duration_s and vc. Raises MalformedHistoryError."""
    return read_file(path).rows


def read_file(path: Path) -> TraceFile:
    """Read a trace file with its kind; jobs whose run time is not known are left out."""
    with text_of(path) as lines:
        trace = read_rows(lines, where=str(path))
    rows = [_told(row) for row in trace.rows if not row.is_cut]
    return TraceFile(
        rows=rows,
        is_openb=trace.is_openb,
        is_workload_format=trace.is_workload_format,
        left_out=trace.never_placed + len(trace.rows) - len(rows),
    )


def _told(row: TraceRow) -> dict[str, str]:
    """Return the columns that are replayed; a program comes before the id, as in a job's name."""
    five = {
        "job_id": row.job_id if row.name is None else f"{row.name}-{row.job_id}",
        "submit_s": str(row.submit_s),
        "gpus": str(row.gpus),
        "duration_s": str(row.duration_s),
        "vc": row.vc or "",
    }
    further = {"user": row.user, "requested_s": row.requested_s}
    return five | {name: str(value) for name, value in further.items() if value is not None}


def jobs_of(
    rows: Iterable[Mapping[str, str]],
    *,
    seed: int,
    wide: bool = False,
    days: float | None = None,
    requests: Requests = Requests.DRAWN,
) -> list[TraceJob]:
    """Return the jobs in the order of submission.

    Args:
        rows: As ``read_trace`` gives them.
        seed: Draws class, checkpoints and requested time.
        wide: Half of the jobs of the 8-GPU pool become two to eight times as wide.
        days: Only what was submitted in the first so many days.
        requests: How jobs get their requested times.
    """
    jobs = (_job(row, seed=seed, wide=wide, requests=requests) for row in rows)
    within = (job for job in jobs if days is None or job.submit_s < days * DAY_S)
    return sorted(within, key=lambda job: (job.submit_s, job.job_id))


def _job(row: Mapping[str, str], *, seed: int, wide: bool, requests: Requests) -> TraceJob:
    job_id = row["job_id"]
    duration_s, request_s = _times_s(row, seed=seed, requests=requests)
    pool, instances = _place(int(row["gpus"]))
    if wide and pool == "g8":
        instances = min(WIDEST, instances * _widened(draw(seed, "w", job_id)))
    return TraceJob(
        job_id=job_id,
        team=row["vc"],
        submit_s=int(float(row["submit_s"])),
        duration_s=duration_s,
        pool=pool,
        instances=instances,
        klass=drawn_class(seed, job_id),
        checkpoint_every_s=drawn_checkpoints_s(seed, job_id),
        user=row.get("user"),
        requested_s=request_s,
        breaks_after_s=_whole(row.get("breaks_after_s")),
        end="failed" if row.get("end") == "failed" else "completed",
    )


def _times_s(row: Mapping[str, str], *, seed: int, requests: Requests) -> tuple[int, int]:
    """Return the seconds that the job runs, and those that it requests."""
    duration_s = min(int(float(row["duration_s"])), LONGEST_RUN_S)
    if requests is Requests.DAY:
        return min(duration_s, DEFAULT_S), DEFAULT_S
    told_s = _whole(row.get("requested_s"))
    return duration_s, requested_s(seed, row["job_id"], duration_s=duration_s, told_s=told_s)


def _whole(text: str | None) -> int | None:
    return None if text is None else int(float(text))


def _place(gpus: int) -> tuple[str, int]:
    """Return pool and instances; above ``MOST_SINGLE_GPUS`` the smallest instance that has the GPUs."""
    if gpus <= MOST_SINGLE_GPUS:
        return "g1", gpus
    return ("g4", 1) if gpus < POOLS["g8"].gpus else ("g8", math.ceil(gpus / POOLS["g8"].gpus))


def _widened(drawn: float) -> int:
    """Return a factor: 50 % stay as they are, 20 % are twice, 20 % four times, 10 % eight times as wide."""
    return next(times for upto, times in ((0.5, 1), (0.7, 2), (0.9, 4), (1.0, 8)) if drawn < upto)
