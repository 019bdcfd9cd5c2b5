"""How a training job is shown: by Describe and List, in an event, and to the operator of the twin."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from local.sagemaker.hosts import hosts_of
from local.sagemaker.jobs import TrainingJob

_Show = Callable[[datetime], float]

_DESCRIBED = (
    "HyperParameters",
    "AlgorithmSpecification",
    "RoleArn",
    "InputDataConfig",
    "VpcConfig",
    "CheckpointConfig",
    "DebugHookConfig",
    "ExperimentConfig",
    "DebugRuleConfigurations",
    "TensorBoardOutputConfig",
    "ProfilerConfig",
    "ProfilerRuleConfigurations",
    "Environment",
    "RetryStrategy",
    "RemoteDebugConfig",
    "InfraCheckConfig",
    "MlflowConfig",
    "ModelPackageConfig",
)
"""Members of the request that DescribeTrainingJob gives back as they came."""

_FLAGS = (
    "EnableNetworkIsolation",
    "EnableInterContainerTrafficEncryption",
    "EnableManagedSpotTraining",
)

_IN_EVENTS = (
    "HyperParameters",
    "AlgorithmSpecification",
    "RoleArn",
    "InputDataConfig",
)
"""An event has neither Environment nor FailureReason, billable time or WarmPoolStatus: describe for them."""


def description(job: TrainingJob, *, now: datetime) -> dict[str, Any]:
    """Write the answer of DescribeTrainingJob, never with tags. Times are epoch seconds, as on the wire."""
    shown = _identity(job) | {name: job.request[name] for name in _DESCRIBED if name in job.request}
    shown |= {flag: job.request.get(flag, False) for flag in _FLAGS}
    shown |= _common(job) | _times(job, _epoch_seconds)
    shown["SecondaryStatusTransitions"] = _transitions(job, _epoch_seconds)
    return shown | _present(
        FailureReason=job.failure_reason,
        TrainingTimeInSeconds=job.training_seconds,
        BillableTimeInSeconds=job.billable_seconds,
        WarmPoolStatus=_warm_pool(job, now),
        FinalMetricDataList=_final_metrics(job),
    )


def summary(job: TrainingJob, *, now: datetime) -> dict[str, Any]:
    """Write one entry of ListTrainingJobs."""
    times = _times(job, _epoch_seconds)
    times.pop("TrainingStartTime", None)
    return _identity(job) | times | _present(WarmPoolStatus=_warm_pool(job, now))


def event_detail(job: TrainingJob) -> dict[str, Any]:
    """Write the detail of "SageMaker Training Job State Change".

    Tags are a map, times are in epoch milliseconds.
    """
    shown = _identity(job) | {name: job.request[name] for name in _IN_EVENTS if name in job.request}
    shown |= _common(job) | _times(job, _epoch_milliseconds)
    shown["SecondaryStatusTransitions"] = _transitions(job, _epoch_milliseconds)
    shown["Tags"] = dict(job.tags)
    return shown


def record(job: TrainingJob, pids: list[int], *, now: datetime) -> dict[str, Any]:
    """Return the control interface's record of a job; times are ISO 8601."""
    return {
        "name": job.name,
        "arn": job.arn,
        "status": job.primary.value,
        "secondary_status": job.secondary.value,
        "failure_reason": job.failure_reason,
        "instance_type": job.groups[0].instance_type if job.groups else None,
        "instance_count": sum(group.count for group in job.groups),
        "hosts": [host.name for host in hosts_of(job.groups)],
        "spot": job.spec.is_spot,
        "warm_pool": _warm_pool(job, now),
        "tags": dict(job.tags),
        "created_by": job.created_by,
        "created_at": _iso(job.created_at),
        "started_at": _iso(job.started_at),
        "ended_at": _iso(job.ended_at),
        "training_seconds": job.training_seconds,
        "billable_seconds": job.billable_seconds,
        "transitions": [
            {"status": transition.status.value, "start": _iso(transition.start), "end": _iso(transition.end)}
            for transition in job.transitions
        ],
        "pids": pids,
    }


def _identity(job: TrainingJob) -> dict[str, Any]:
    return {
        "TrainingJobName": job.name,
        "TrainingJobArn": job.arn,
        "TrainingJobStatus": job.primary.value,
        "SecondaryStatus": job.secondary.value,
    }


def _common(job: TrainingJob) -> dict[str, Any]:
    """Return the members that Describe and events share; the SDK reads KmsKeyId without a default."""
    return {
        "OutputDataConfig": {"KmsKeyId": "", **job.request["OutputDataConfig"]},
        "ResourceConfig": job.request["ResourceConfig"] | _selected(job),
        "StoppingCondition": {
            "MaxRuntimeInSeconds": round(job.spec.max_runtime.total_seconds()),
            **job.request.get("StoppingCondition", {}),
        },
        "ModelArtifacts": {"S3ModelArtifacts": job.model_artifacts.uri},
    }


def _selected(job: TrainingJob) -> dict[str, Any]:
    if job.selected is None:
        return {}
    return {
        "SelectedInstanceType": job.selected.instance_type,
        "SelectedInstanceCount": job.selected.count,
    }


def _times(job: TrainingJob, show: _Show) -> dict[str, Any]:
    ended_at = job.ended_at if job.started_at else None
    return {
        "CreationTime": show(job.created_at),
        "LastModifiedTime": show(job.modified_at),
        **({"TrainingStartTime": show(job.started_at)} if job.started_at else {}),
        **({"TrainingEndTime": show(ended_at)} if ended_at else {}),
    }


def _transitions(job: TrainingJob, show: _Show) -> list[dict[str, Any]]:
    return [
        {
            "Status": transition.status.value,
            "StartTime": show(transition.start),
            **({"EndTime": show(transition.end)} if transition.end else {}),
            "StatusMessage": transition.message,
        }
        for transition in job.transitions
    ]


def _final_metrics(job: TrainingJob) -> list[dict[str, Any]] | None:
    """Return the final metrics; None if there are none.

    Source: SageMaker API reference, TrainingJob, FinalMetricDataList.
    """
    return [
        {"MetricName": metric.name, "Value": metric.value, "Timestamp": _epoch_seconds(metric.at)}
        for metric in job.final_metrics
    ] or None


def _warm_pool(job: TrainingJob, now: datetime) -> dict[str, Any] | None:
    if job.warm_pool is None:
        return None
    pool = job.warm_pool.at(now)
    return {"Status": pool.status.value} | _present(
        ResourceRetainedBillableTimeInSeconds=pool.retained_seconds(now), ReusedByJob=pool.reused_by
    )


def _present(**members: object) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _epoch_seconds(instant: datetime) -> float:
    return round(instant.timestamp(), 3)


def _epoch_milliseconds(instant: datetime) -> int:
    return round(instant.timestamp() * 1000)


def _iso(instant: datetime | None) -> str | None:
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z") if instant else None
