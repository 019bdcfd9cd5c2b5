"""Reads what became of governed jobs from the twin's journal, its control calls, CloudWatch and the API."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from trainmaster_client.api import ApiClient
from trainmaster_client.errors import RefusedError

from demos.stage.evidence import Document
from demos.stage.vigil import CHANGING

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch import CloudWatchClient

    from demos.stage.job_requests import Job
    from demos.stage.twin_stage import Stage

IDLE_ALARMS = "trainmaster-trainmaster-idle-"
WATCHDOG = (
    "[rank1]:[E ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=41, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600014 "
    "milliseconds before timing out."
)
"""A line that NCCL writes when a host is lost."""
NOT_FINITE = "\n".join(f"step={step} loss=nan" for step in (41, 42, 43))
"""Lines of a loss that no training recovers from."""
PROMPT_SECONDS = 60
"""A job that bypassed the queue is stopped within this time."""
_HOUR_SECONDS = 3600
_ENDED_POOLS = ("Reused", "Terminated")


def changes(records: Iterable[Document]) -> list[Document]:
    """Return what happened to training jobs, alarms and people, in the order of the journal."""
    return [record for record in records if record["kind"] == "process" or record["operation"] in CHANGING]


def stopped_job(records: Iterable[Document], training_job: str) -> Document:
    """Return when a training job was started, and when it was first asked to stop."""
    started = _calls(records, "CreateTrainingJob", training_job)
    stops = _calls(records, "StopTrainingJob", training_job)
    return {
        "training_job": training_job,
        "started_at": started[0]["clock"] if started else None,
        "started_by": started[0]["principal"] if started else None,
        "stop_requested_at": stops[0]["clock"] if stops else None,
        "stop_requested_by": stops[0]["principal"] if stops else None,
    }


def trained_until(records: Iterable[Document], training_job: str, *, minutes: int) -> str | None:
    """Return when a training job had trained so many minutes; None: it never began."""
    starts = [
        record["clock"]
        for record in records
        if record["kind"] == "process"
        and record["training_job"] == training_job
        and record["event"] == "start"
    ]
    return _iso(datetime.fromisoformat(starts[0]) + timedelta(minutes=minutes)) if starts else None


def reaction(records: Sequence[Document], training_job: str, *, event: str, began_at: str | None) -> Document:
    """Return the times of a trouble, its warning and its stop; the warning is the one on the event bus."""
    warnings = [
        record["clock"]
        for record in records
        if record["kind"] == "call"
        and record["operation"] == "PutEvents"
        and any(_warns(entry, event, training_job) for entry in record["params"]["Entries"])
    ]
    stopped = stopped_job(records, training_job)
    return {
        "training_job": training_job,
        "began_at": began_at,
        "warned_at": warnings[0] if warnings else None,
        "stopped_at": stopped["stop_requested_at"],
        "stopped_by": stopped["stop_requested_by"],
    }


def reacted(
    name: str, times: Document, bounds: tuple[tuple[int, int], tuple[int, int]]
) -> Iterator[tuple[Any, ...]]:
    """Yield the checks ``NAME-warned`` and ``NAME-stopped`` of what ``reaction`` found."""
    warned, stopped = bounds
    yield f"{name}-warned", *within(warned, times["began_at"], times["warned_at"])
    yield f"{name}-stopped", *within(stopped, times["warned_at"], times["stopped_at"])


def stops(records: Iterable[Document]) -> list[str]:
    """Return the training jobs that somebody asked to stop."""
    calls = [
        record for record in records if record["kind"] == "call" and record["operation"] == "StopTrainingJob"
    ]
    return sorted({call["params"]["TrainingJobName"] for call in calls})


def idle_alarms(cloudwatch: "CloudWatchClient") -> dict[str, str]:
    """Return the state of each idle alarm, by the name of what it watches."""
    alarms = cloudwatch.describe_alarms(AlarmNamePrefix=IDLE_ALARMS)["MetricAlarms"]
    return {alarm["AlarmName"].removeprefix(IDLE_ALARMS): alarm["StateValue"] for alarm in alarms}


def billed(training_jobs: Iterable[Document], names: Collection[str]) -> Document:
    """Return the twin's count for training jobs: the time that their instances ran or were kept warm."""
    governed = [training_job for training_job in training_jobs if training_job["name"] in names]
    return {
        "training_jobs": governed,
        "twin_billed_instance_seconds": sum(
            training_job["instance_count"]
            * ((training_job["training_seconds"] or 0) + kept_warm_seconds(training_job))
            for training_job in governed
        ),
    }


def kept_warm_seconds(training_job: Document) -> int:
    """Return the billed seconds of a warm pool that has ended: only then is it billed."""
    pool = training_job["warm_pool"]
    if pool is None or pool["Status"] not in _ENDED_POOLS:
        return 0
    seconds: int = pool["ResourceRetainedBillableTimeInSeconds"]
    return seconds


def ledger(api: ApiClient, views: Iterable[Mapping[str, Any]]) -> Document:
    """Return what GET /usage says of the same jobs, in the months in which they were claimed."""
    months = sorted({str(view["started_at"])[:7] for view in views if view["started_at"]})
    usages = [api.usage(month=month) for month in months]
    return {
        "ledger": usages,
        "ledger_instance_seconds": sum(usage["total"]["instance_seconds"] for usage in usages),
    }


def _calls(records: Iterable[Document], operation: str, training_job: str) -> list[Document]:
    return [
        record
        for record in records
        if record["kind"] == "call"
        and record["operation"] == operation
        and record["status"] < 400  # noqa: PLR2004  refused calls changed nothing
        and record["params"].get("TrainingJobName") == training_job
    ]


def _warns(entry: Mapping[str, Any], event: str, training_job: str) -> bool:
    return entry["DetailType"] == event and f'"job": "{training_job}"' in entry["Detail"]


def _iso(instant: datetime) -> str:
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def reported(violations: Iterable[Document], training_job: str) -> list[str]:
    """Return outcome and rules of each record of a training job."""
    return [
        ", ".join([violation["outcome"], *sorted(broken["rule"] for broken in violation["violations"])])
        for violation in violations
        if violation["training_job_name"] == training_job
    ]


def failure_class(attempt: Document) -> str | None:
    diagnosis = attempt["diagnosis"] or {}
    kind: str | None = diagnosis.get("class")
    return kind


def hours_in(training_jobs: Iterable[Document], name: str, status: str) -> float:
    """Return the hours that a training job was in a secondary status."""
    (job,) = [job for job in training_jobs if job["name"] == name]
    spans = (
        seconds_between(transition["start"], transition["end"]) or 0.0
        for transition in job["transitions"]
        if transition["status"] == status
    )
    return sum(spans) / _HOUR_SECONDS


def usd(training_job: Document, prices: Mapping[str, float]) -> float:
    """Return what the twin's billable time costs at list price."""
    seconds: int = (training_job["billable_seconds"] or 0) + kept_warm_seconds(training_job)
    instances: int = training_job["instance_count"]
    return instances * seconds / _HOUR_SECONDS * prices[training_job["instance_type"]]


def seconds_between(earlier: str | None, later: str | None) -> float | None:
    if earlier is None or later is None:
        return None
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()


def promptly(stopped: Document) -> tuple[str, str, bool]:
    """Hold the stop of a job that bypassed the queue to PROMPT_SECONDS."""
    seconds = seconds_between(stopped["started_at"], stopped["stop_requested_at"])
    by = str(stopped["stop_requested_by"]).rpartition("/")[2]
    return (
        f"stopped by schedule within {PROMPT_SECONDS} s",
        f"stopped by {by} after {'-' if seconds is None else seconds} s",
        by == "schedule" and seconds is not None and seconds <= PROMPT_SECONDS,
    )


def within(bounds: tuple[int, int], earlier: str | None, later: str | None) -> tuple[str, str, bool]:
    """Hold the time between two instants to bounds in minutes."""
    (least, most), seconds = bounds, seconds_between(earlier, later)
    minutes = None if seconds is None else seconds / 60
    return (
        f"{least} to {most} minutes",
        "never" if minutes is None else f"{minutes:.1f} minutes",
        minutes is not None and least <= minutes <= most,
    )


def submitted(stage: "Stage", job: "Job") -> Document:
    """Submit a job, and return the answer, or what the API has against it."""
    try:
        return stage.submit(job)
    except RefusedError as error:
        errors = [
            {"field": wrong.field, "rule": wrong.rule, "message": wrong.message}
            for wrong in error.problem.errors
        ]
        return {"job": job.name, "status": error.problem.status, "errors": errors}
