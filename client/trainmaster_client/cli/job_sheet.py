"""One job in lines: the facts, its attempts, its history."""

from collections.abc import Iterator
from datetime import datetime

from trainmaster_client.api import Document
from trainmaster_client.cli.instants import length, likely_start
from trainmaster_client.cli.past import losses
from trainmaster_client.http.printable import printable
from trainmaster_client.jobs.job_views import Attempt, JobView, job_view
from trainmaster_client.jobs.progress import place_line, transition_line

_FACTS = {
    "team": "team",
    "submitted_by": "submitted by",
    "pool": "pool",
    "priority": "priority",
    "effective_priority": "effective priority",
    "submitted_at": "submitted",
    "started_at": "started",
    "ended_at": "ended",
    "training_job_arn": "training job",
    "preemptions": "preemptions",
    "retries": "retries",
    "cost_usd": "cost in USD",
}


def sheet(document: Document, *, now: datetime) -> list[str]:
    """The lines of ``trainmaster show``."""
    job = job_view(document)
    return [
        f"{job.name}: {_standing(job)}",
        *_facts(document, job, now),
        *_section("Attempts", [line for attempt in job.attempts for line in _attempt_lines(attempt, now)]),
        *_section("History", [transition_line(transition, job) for transition in job.history]),
    ]


def _standing(job: JobView) -> str:
    if job.is_waiting:
        return f"{job.state}. {place_line(job)}"
    return f"{job.state} - {job.why}" if job.why else job.state


def _facts(document: Document, job: JobView, now: datetime) -> Iterator[str]:
    yield f"  instances: {job.instances}"
    for key, label in _FACTS.items():
        if document.get(key) not in (None, ""):
            estimate = " (estimate)" if key == "cost_usd" and document.get("cost_is_estimate") else ""
            value = f"{document[key]:.2f}" if key == "cost_usd" else printable(document[key])
            yield f"  {label}: {value}{estimate}"
    if start := document.get("estimated_start"):
        yield f"  {likely_start(start, now=now)}"
    yield from (f"  {lost}" for lost in losses(document))


def _attempt_lines(attempt: Attempt, now: datetime) -> list[str]:
    saved = attempt.last_checkpoint
    age = f" ({length(now - saved)} ago)" if saved and attempt.ended_at is None else ""
    checkpoint = [f"newest checkpoint: {_time(saved)}{age}"] if saved else []
    found = [attempt.diagnosis] if attempt.diagnosis else []
    return [_attempt_line(attempt), *(f"   {line}" for line in (*checkpoint, *found, *attempt.warnings))]


def _attempt_line(attempt: Attempt) -> str:
    parts = [
        f"{attempt.number}  {attempt.training_job_name}",
        " ".join(dict.fromkeys(word for word in (attempt.status, attempt.secondary_status) if word)),
        attempt.capacity_type,
        f"{_time(attempt.started_at)} to {_time(attempt.ended_at)}" if attempt.started_at else "",
        attempt.why,
    ]
    return ", ".join(part for part in parts if part)


def _time(at: datetime | None) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S") if at else "now"


def _section(title: str, lines: list[str]) -> list[str]:
    return [title, *(f"  {line}" for line in lines)] if lines else []
