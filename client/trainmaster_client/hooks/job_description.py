"""DescribeTrainingJob for a job of the queue: one answer over its waits and all its attempts. Pure.

The SDKs and other callers of boto3 see it under the name that was submitted. The status is the job's, so
a preempted job is in progress; all else is as SageMaker describes the live attempt, or the last one.
"""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from trainmaster_client.jobs.job_views import FINAL_STATES, WAITING_STATES, JobView, Transition
from trainmaster_client.jobs.progress import place_line

Description: TypeAlias = dict[str, Any]
"""An answer of DescribeTrainingJob as boto3 gives it: timestamps are aware datetimes."""

LONGEST_FAILURE_REASON = 1024
"""Characters. Source: SageMaker API reference, DescribeTrainingJob, FailureReason."""
NEVER_DESCRIBED = frozenset({"Tags", "SessionChainingConfig"})
"""Members of a CreateTrainingJob request that descriptions do not have. Source: SageMaker API reference."""
_DEFAULT_RUNTIME_SECONDS = 86_400
"""SageMaker's default. Source: SageMaker API reference, StoppingCondition, MaxRuntimeInSeconds."""

_STATUS = {"completed": "Completed", "failed": "Failed", "stopped": "Stopped", "stopping": "Stopping"}
"""TrainingJobStatus of a job state; any other state is InProgress."""
_ENDED = frozenset({"Completed", "Failed", "Stopped"})
_SUMS = ("TrainingTimeInSeconds", "BillableTimeInSeconds")
_OF_ONE_ATTEMPT = ("FailureReason", "TrainingStartTime", "TrainingEndTime", "ResponseMetadata", *_SUMS)
"""Members that must not be copied from the last attempt."""


def description(
    job: JobView, request: Mapping[str, Any], attempts: Mapping[int, Description], *, arn: str
) -> Description:
    """Return the description of the job under the name that was submitted.

    Args:
        job: The job with attempts and history.
        request: The request as it was submitted, which is shown before there is an attempt.
        attempts: SageMaker's description of each attempt it knows, by number.
        arn: ARN of the training job with the submitted name, shown before there is an attempt.
    """
    ordered = [attempts[number] for number in sorted(attempts)]
    last = ordered[-1] if ordered else described_request(request, arn, str(job.name))
    status = _status(job, last)
    kept = {name: value for name, value in last.items() if name not in _OF_ONE_ATTEMPT}
    return {
        **kept,
        "TrainingJobName": job.name,
        "TrainingJobStatus": status,
        "SecondaryStatus": _secondary_status(job, last, status),
        "SecondaryStatusTransitions": list(_transitions(job, attempts)),
        **_times(job, ordered, status),
        **_final_metrics(ordered),
        **({"FailureReason": _failure(job, last)} if status == "Failed" else {}),
    }


def described_request(request: Mapping[str, Any], arn: str, name: str) -> Description:
    """Describe a job that has no attempt from its request, with SageMaker's defaults."""
    output = {"KmsKeyId": "", **(request.get("OutputDataConfig") or {})}
    limits = {"MaxRuntimeInSeconds": _DEFAULT_RUNTIME_SECONDS, **(request.get("StoppingCondition") or {})}
    return {
        "EnableNetworkIsolation": False,
        "EnableInterContainerTrafficEncryption": False,
        "EnableManagedSpotTraining": False,
        "ResourceConfig": {},
        **{field: value for field, value in request.items() if field not in NEVER_DESCRIBED},
        "TrainingJobArn": arn,
        "OutputDataConfig": output,
        "StoppingCondition": limits,
        "ModelArtifacts": {"S3ModelArtifacts": _model_location(output, name)},
    }


def _model_location(output: Mapping[str, Any], name: str) -> str:
    """Return where the first attempt would put the model.

    Source: SageMaker API reference, OutputDataConfig.
    """
    model = "model" if output.get("CompressionType") == "NONE" else "model.tar.gz"
    return f"{str(output.get('S3OutputPath') or '').rstrip('/')}/{name}/output/{model}"


def _status(job: JobView, last: Description) -> str:
    """Return the job's status.

    A live attempt that is Completed completes its job, even if it was to be stopped.
    """
    if not job.is_final and not job.is_waiting and last.get("TrainingJobStatus") == "Completed":
        return "Completed"
    return _STATUS.get(job.state, "InProgress")


def _secondary_status(job: JobView, last: Description, status: str) -> str:
    if job.is_waiting:
        return "Pending"
    if last.get("TrainingJobStatus") != status and (job.is_final or status == "Stopping"):
        return status
    not_shown_yet = job.state == "starting" and last.get("TrainingJobName") != job.training_job_name
    if not_shown_yet or "SecondaryStatus" not in last:
        return status if status != "InProgress" else "Starting"
    return str(last["SecondaryStatus"])


def _times(job: JobView, attempts: list[Description], status: str) -> Description:
    """Return the times: training began with the first attempt, ended with the last, and took their sum."""
    changes = [job.submitted_at, *(step.at for step in job.history)]
    changes += [attempt.get("LastModifiedTime") for attempt in attempts]
    started = [attempt["TrainingStartTime"] for attempt in attempts if "TrainingStartTime" in attempt]
    ended = [attempt["TrainingEndTime"] for attempt in attempts[-1:] if "TrainingEndTime" in attempt]
    sums = {name: [attempt[name] for attempt in attempts if name in attempt] for name in _SUMS}
    return {
        "CreationTime": job.submitted_at,
        "LastModifiedTime": max((change for change in changes if change is not None), default=None),
        **({"TrainingStartTime": min(started)} if started else {}),
        **({"TrainingEndTime": ended[0]} if ended and status in _ENDED else {}),
        **{name: sum(values) for name, values in sums.items() if values},
    }


def _final_metrics(attempts: list[Description]) -> Description:
    """Return the newest value of each metric: the attempt that ended the job need not have found them all."""
    metrics = [metric for attempt in attempts for metric in attempt.get("FinalMetricDataList") or ()]
    newest = {metric["MetricName"]: metric for metric in metrics}
    return {"FinalMetricDataList": list(newest.values())} if newest else {}


def _failure(job: JobView, last: Description) -> str:
    """Return SageMaker's reason, then ours: callers look for "CapacityError" and the like at its start."""
    whole = " - ".join(part for part in (str(last.get("FailureReason") or ""), job.why) if part)
    return whole[:LONGEST_FAILURE_REASON]


def _transitions(job: JobView, attempts: Mapping[int, Description]) -> Iterator[Description]:
    """Yield the job's history in order: each wait, and each attempt where it was finally started."""
    starts = {step.attempt: step for step in job.history if step.to == "starting"}
    for number in sorted(set(attempts) - set(starts)):
        yield from _attempt_transitions(attempts[number])
    for step, following in zip(job.history, (*job.history[1:], None), strict=False):
        if step.to in WAITING_STATES:
            yield _wait(job, step, following)
        elif starts.get(step.attempt) is step:
            yield from _attempt_transitions(attempts.get(step.attempt) or _just_started(step))
        elif step.to in FINAL_STATES and not _ended_so(step, attempts):
            yield _entry(_STATUS[step.to], step, step, step.why)
    if not job.history and job.is_waiting:
        yield {"Status": "Pending", "StartTime": job.submitted_at, "StatusMessage": place_line(job)}


def _attempt_transitions(attempt: Description) -> list[Description]:
    return list(attempt.get("SecondaryStatusTransitions") or ())


def _just_started(step: Transition) -> Description:
    """Describe an attempt that SageMaker does not show yet."""
    return {"SecondaryStatusTransitions": [_entry("Starting", step, None, "The queue starts it")]}


def _wait(job: JobView, step: Transition, following: Transition | None) -> Description:
    message = place_line(job) if following is None else step.why or "Waited in the queue"
    return _entry("Pending", step, following, message)


def _entry(status: str, step: Transition, until: Transition | None, message: str) -> Description:
    end = {} if until is None else {"EndTime": until.at}
    return {"Status": status, "StartTime": step.at, **end, "StatusMessage": message}


def _ended_so(step: Transition, attempts: Mapping[int, Description]) -> bool:
    """Tell whether the last attempt's own transitions already end this way."""
    last = attempts[max(attempts)] if attempts else {}
    return last.get("TrainingJobStatus") == _STATUS[step.to]
