"""Translate SageMaker's answers for the core: printable texts, instants as the table keeps them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from itertools import zip_longest
from typing import Any

from trainmaster.core.diagnosis.evidence import without_secrets
from trainmaster.core.durations.work_speeds import speed_of
from trainmaster.core.jobs.attempts import StatusStart
from trainmaster.core.jobs.observations import TERMINAL_STATUSES, Observation, TrainingInterval
from trainmaster.core.policy.plan_windows import PlanSeen, Window
from trainmaster.core.request.request_shapes import ROOT, SHAPES

_ONLY_SHOWN = frozenset({"SelectedInstanceType", "SelectedInstanceCount"})
"""Members of ResourceConfig that only Describe returns. Source: SageMaker API, ResourceConfig."""


def request_of(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members that CreateTrainingJob takes, without the empty ones that Describe adds."""
    request: dict[str, Any] = _kept(answer, ROOT)
    resources = request.get("ResourceConfig", {})
    if "InstanceGroups" in resources or "InstancePreferences" in resources:
        # A count of 0 stands for none; with groups it must not be there.
        request["ResourceConfig"] = {name: content for name, content in resources.items() if content != 0}
    return request


def _kept(content: Any, shape_name: str) -> Any:
    shape = SHAPES[shape_name]
    match shape["type"]:
        case "structure":
            members = shape["members"].items()
            kept = {
                name: _kept(content[name], member)
                for name, member in members
                if name in content and name not in _ONLY_SHOWN
            }
            return {name: part for name, part in kept.items() if part not in ("", [], {}, None)}
        case "list":
            return [_kept(part, shape["member"]) for part in content]
        case "map":
            return dict(content)
        case _:
            return content


MAX_REASON = 1024
"""Characters of FailureReason that are kept. Source: SageMaker API, FailureReason."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Control and direction-changing characters: user code could move the cursor or turn the text around."""


def observation_of(answer: Mapping[str, Any]) -> Observation:
    status = answer["TrainingJobStatus"]
    ended = answer.get("TrainingEndTime") or answer.get("LastModifiedTime")
    reason = answer.get("FailureReason")
    training_intervals = tuple(_training_intervals(answer))
    return Observation(
        training_job_name=answer["TrainingJobName"],
        training_job_arn=answer["TrainingJobArn"],
        status=status,
        secondary_status=answer.get("SecondaryStatus") or status,
        failure_reason=None if reason is None else _shown(reason),
        created_at=_instant(answer.get("CreationTime")),
        training_since=training_intervals[0].since if training_intervals else None,
        launched_at=_instant(answer.get("TrainingStartTime")),
        max_pending=_seconds(answer.get("StoppingCondition", {}), "MaxPendingTimeInSeconds"),
        ended_at=_instant(ended) if status in TERMINAL_STATUSES else None,
        selected_type=answer.get("ResourceConfig", {}).get("SelectedInstanceType"),
        warm_status=answer.get("WarmPoolStatus", {}).get("Status"),
        retained=_seconds(answer.get("WarmPoolStatus", {}), "ResourceRetainedBillableTimeInSeconds"),
        billable=_seconds(answer, "BillableTimeInSeconds"),
        up=_seconds(answer, "TrainingTimeInSeconds"),
        interruptions=sum(transition["Status"] == "Interrupted" for transition in _transitions(answer)),
        training_intervals=training_intervals,
        statuses=tuple(
            StatusStart(status=transition["Status"], at=in_milliseconds(transition["StartTime"]))
            for transition in _transitions(answer)
        ),
        speed=speed_of(_last_metrics(answer)),
    )


def _last_metrics(answer: Mapping[str, Any]) -> dict[str, object]:
    """Return the last value of each metric. Source: SageMaker API reference, FinalMetricDataList."""
    metrics = answer.get("FinalMetricDataList") or ()
    return {str(metric.get("MetricName")): metric.get("Value") for metric in metrics}


_FOR_JOBS = "training-job"
"""Target of plans that training jobs can use. Source: SageMaker API reference, TargetResources."""


def plan_of(answer: Mapping[str, Any]) -> PlanSeen:
    """Translate DescribeTrainingPlan. Source: SageMaker API reference, DescribeTrainingPlan."""
    parts = answer.get("ReservedCapacitySummaries", [])
    targets = answer.get("TargetResources") or [_FOR_JOBS]
    is_for_jobs = _FOR_JOBS in targets
    fee = answer.get("UpfrontFee") if answer.get("CurrencyCode", "USD") == "USD" else None
    return PlanSeen(
        arn=answer["TrainingPlanArn"],
        status=answer["Status"],
        instance_type=parts[0]["InstanceType"] if parts else "",
        total=answer.get("TotalInstanceCount", 0),
        unhealthy=answer.get("UnhealthyInstanceCount", 0),
        available=answer.get("AvailableInstanceCount"),
        fee_usd=_amount(fee),
        windows=tuple(_windows(parts)) if is_for_jobs else (),
        trouble=None if is_for_jobs else f"it is for {', '.join(targets)}, not for training jobs",
    )


def _amount(text: str | None) -> Decimal | None:
    """Read an amount of money; None if there is none, or it is no amount above zero."""
    try:
        amount = None if text is None else Decimal(text.replace(",", ""))
    except InvalidOperation:
        return None
    return amount if amount is not None and amount.is_finite() and amount > 0 else None


def _windows(parts: Sequence[Mapping[str, Any]]) -> Iterator[Window]:
    for part in parts:
        if "StartTime" in part and "EndTime" in part:
            yield Window(
                begin=in_milliseconds(part["StartTime"]),
                end=in_milliseconds(part["EndTime"]),
                instances=part["TotalInstanceCount"],
                status=part.get("Status", "Scheduled"),
            )


def _seconds(answer: Mapping[str, Any], name: str) -> timedelta | None:
    return timedelta(seconds=answer[name]) if name in answer else None


def _transitions(answer: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    transitions: Sequence[Mapping[str, Any]] = answer.get("SecondaryStatusTransitions", [])
    return transitions


def _training_intervals(answer: Mapping[str, Any]) -> Iterator[TrainingInterval]:
    """Yield the times in status Training; an interval without an end lasts until the next status."""
    transitions = _transitions(answer)
    for transition, next_transition in zip_longest(transitions, transitions[1:]):
        if transition["Status"] == "Training":
            until = transition.get("EndTime") or (next_transition["StartTime"] if next_transition else None)
            yield TrainingInterval(since=in_milliseconds(transition["StartTime"]), until=_instant(until))


def _instant(instant: datetime | None) -> datetime | None:
    return None if instant is None else in_milliseconds(instant)


def in_milliseconds(instant: datetime) -> datetime:
    """Return the instant in UTC, cut to whole milliseconds as the table keeps it."""
    exact = instant.astimezone(UTC)
    return exact.replace(microsecond=exact.microsecond // 1000 * 1000)


def _shown(reason: str) -> str:
    """Hide secrets and then cut the text: it quotes what the program printed last, and is kept and mailed."""
    return printable(without_secrets(reason[: 2 * MAX_REASON]))


def printable(text: str) -> str:
    """Make a text safe to store, log and print: bounded, without control or direction-changing characters."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)[:MAX_REASON]
