"""Reads what the four jobs really did from their logs and the twin's journal."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import boto3

from demos.stage.evidence import Document, log_lines
from training.metrics import metrics_in

_RESUMED = re.compile(r"^resumed from step=(\d+) file=(\S+) sha256=([0-9a-f]{64})")

Loss = tuple[int, float]


def losses_of(lines: Iterable[str]) -> list[Loss]:
    """Return (step, loss) of each metric line."""
    return [(int(metrics["step"]), float(metrics["loss"])) for line in lines if (metrics := metrics_in(line))]


def attempts(
    jobs: Sequence[Document], checkpoints: Mapping[str, str], stored: Mapping[str, str]
) -> list[Document]:
    """Return what each attempt did, from its log.

    Args:
        jobs: Answers of GET /jobs/{name}.
        checkpoints: S3 prefix by job name.
        stored: SHA-256 by S3 URI, of the checkpoints as they lay in S3 while their job was preempted.
    """
    logs = boto3.client("logs")
    return [
        _attempt(job["name"], attempt, log_lines(logs, attempt["training_job_name"]), checkpoints, stored)
        for job in jobs
        for attempt in job["attempts"]
    ]


def _attempt(
    job: str, attempt: Document, lines: list[str], checkpoints: Mapping[str, str], stored: Mapping[str, str]
) -> Document:
    losses = losses_of(lines)
    resumed = next((match for line in lines if (match := _RESUMED.match(line))), None)
    uri = None if resumed is None else f"{checkpoints[job]}/{resumed[2]}"
    return {
        "job": job,
        "attempt": attempt["attempt"],
        "training_job_name": attempt["training_job_name"],
        "status": attempt["status"],
        "first_step": losses[0][0] if losses else None,
        "last_step": losses[-1][0] if losses else None,
        "resumed_from": None
        if resumed is None or uri is None
        else {"s3_uri": uri, "step": int(resumed[1]), "sha256": stored.get(uri), "sha256_read": resumed[3]},
        "losses": [list(loss) for loss in losses],
    }


def steps_lost(made: Sequence[Document]) -> int | None:
    """Return the steps trained before a preemption and again after it; None if the job did not resume."""
    if len(made) < 2 or made[1]["resumed_from"] is None:  # noqa: PLR2004  before and after
        return None
    lost: int = made[0]["last_step"] - made[1]["resumed_from"]["step"]
    return lost


def most_at_once(journal: Iterable[Document]) -> int:
    """Return the most training containers alive at one instant, from the process events."""
    alive: set[int] = set()
    most = 0
    for record in journal:
        if record["kind"] == "process" and record["event"] == "start":
            alive.add(record["pid"])
            most = max(most, len(alive))
        if record["kind"] == "process" and record["event"] == "exit":
            alive.discard(record["pid"])
    return most


def reference_losses(output: Path) -> list[Loss]:
    return losses_of(output.read_text(encoding="utf-8").splitlines())
