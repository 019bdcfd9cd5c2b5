"""Reads what really happened from the twin's journal, its control calls, CloudWatch and the API."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from trainmaster_client.api import ApiClient

from demos.stage.vigil import CHANGING

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch import CloudWatchClient

Document = dict[str, Any]

IDLE_ALARMS = "trainmaster-trainmaster-idle-"
_IDLE_EVENT = "Job Idle"
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


def idle(records: Sequence[Document], training_job: str, *, stall_minute: int) -> Document:
    """Return the times of stall, warning and stop; the warning is the one on the event bus."""
    starts = [
        record
        for record in records
        if record["kind"] == "process"
        and record["training_job"] == training_job
        and record["event"] == "start"
    ]
    began = datetime.fromisoformat(starts[0]["clock"]) if starts else None
    warnings = [
        record["clock"]
        for record in records
        if record["kind"] == "call"
        and record["operation"] == "PutEvents"
        and any(_is_warning(entry, training_job) for entry in record["params"]["Entries"])
    ]
    stopped = stopped_job(records, training_job)
    return {
        "training_job": training_job,
        "stalled_at": None if began is None else _iso(began + timedelta(minutes=stall_minute)),
        "warned_at": warnings[0] if warnings else None,
        "stopped_at": stopped["stop_requested_at"],
        "stopped_by": stopped["stop_requested_by"],
    }


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


def billed(training_jobs: Iterable[Document], views: Iterable[Document]) -> Document:
    """Return the twin's count for the governed jobs: the time that their instances ran or were kept warm."""
    names = {attempt["training_job_name"] for view in views for attempt in view["attempts"]}
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


def _is_warning(entry: Mapping[str, Any], training_job: str) -> bool:
    return entry["DetailType"] == _IDLE_EVENT and f'"job": "{training_job}"' in entry["Detail"]


def _iso(instant: datetime) -> str:
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")
