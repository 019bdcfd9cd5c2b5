"""Work per dollar: how fast training jobs went in their shapes, by a metric that SageMaker kept of each.

A metric counts what it was defined to count, samples or tokens a second. Figures are compared as they are, so
the runs have to train the same model on samples of the same kind.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from trainmaster.core.costs.prices import SPOT_SHARE
from trainmaster.core.jobs.instances import Capacity, CapacityType
from trainmaster.core.request.options import Alternative

from trainmaster_client.advice.assessments import Assessment, MeasuredSpeed
from trainmaster_client.advice.shapes import shape_text
from trainmaster_client.http.answers import printable

Description = Mapping[str, Any]
"""An answer of DescribeTrainingJob."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One training job in one shape, or the usual one of several."""

    shape: Alternative
    per_second: float
    times: int = 1
    """Number of training jobs that it stands for."""


def run_of_description(description: Description, metric: str) -> Run | str:
    """Return how fast a training job went, or why it tells nothing.

    Args:
        description: The answer of DescribeTrainingJob; the last value of each metric is in it.
        metric: Name of the metric in its MetricDefinitions, which counts work a second.
    """
    resources = description.get("ResourceConfig") or {}
    instance_type, count = resources.get("InstanceType"), resources.get("InstanceCount")
    if not instance_type or not count:
        return "it has no single shape"
    values = {
        entry.get("MetricName"): entry.get("Value") for entry in description.get("FinalMetricDataList") or ()
    }
    if metric not in values:
        known = ", ".join(sorted(printable(name) for name in values if name))
        return f"SageMaker has no {metric} of it" + (f", but {known}" if known else ", nor any other metric")
    value = values[metric]
    if not isinstance(value, int | float) or not 0 < value < float("inf"):
        return f"its {metric} is {printable(value)}"
    capacity_type = (
        CapacityType.SPOT if description.get("EnableManagedSpotTraining") else CapacityType.ON_DEMAND
    )
    capacity = Capacity(instance_type=str(instance_type), capacity_type=capacity_type)
    return Run(shape=Alternative(capacity=capacity, count=int(count), subnet=None), per_second=float(value))


def run_of_speed(speed: Mapping[str, Any]) -> Run:
    """Read what the API says of one shape (``measured_speeds`` of a dry run)."""
    capacity = Capacity(
        instance_type=str(speed["instance_type"]), capacity_type=CapacityType(speed["capacity_type"])
    )
    shape = Alternative(capacity=capacity, count=int(speed["instances"]), subnet=None)
    return Run(shape=shape, per_second=float(speed["per_second"]), times=int(speed["runs"]))


def measured_shapes(runs: Iterable[Run]) -> list[Alternative]:
    """Return the shapes of the runs, each once, in their order."""
    return list(dict.fromkeys(run.shape for run in runs))


def with_speeds(assessments: Sequence[Assessment], runs: Sequence[Run], metric: str) -> list[Assessment]:
    """Give each assessment the median speed of the runs in its shape, whatever subnet they were in."""
    speeds: dict[str, list[float]] = {}
    for run in runs:
        speeds.setdefault(shape_text(run.shape), []).extend([run.per_second] * run.times)
    return [_with_speed(assessment, speeds, metric) for assessment in assessments]


def _with_speed(assessment: Assessment, speeds: Mapping[str, Sequence[float]], metric: str) -> Assessment:
    shape = assessment.candidate.shape
    known = speeds.get(shape_text(replace(shape, subnet=None))) if shape is not None else None
    if not known:
        return assessment
    speed = MeasuredSpeed(metric=metric, per_second=median(known), runs=len(known))
    return replace(assessment, speed=speed)


def speed_lines(assessment: Assessment, first: Assessment | None) -> Iterator[str]:
    """Say how fast a shape was measured to be and what a dollar gets, beside the ``first`` shape measured."""
    speed, work = assessment.speed, assessment.work_per_usd
    if speed is None:
        return
    runs = f"{speed.runs} run" + ("" if speed.runs == 1 else "s")
    line = f"measured on {runs}: {speed.metric} {speed.per_second:,.6g}"
    if work is None:
        yield f"{line}; its price is unknown"
        return
    share = f" at {SPOT_SHARE:.0%} of the price" if assessment.candidate.is_spot else ""
    line = f"{line}, {work:,.3g} per USD{share}"
    if first is None or first is assessment or not first.work_per_usd:
        yield line
    else:
        yield f"{line}, {work / first.work_per_usd:.2f}x that of {first.candidate}"


def first_measured(assessments: Sequence[Assessment]) -> Assessment | None:
    """Return the shape to compare with: the first of those assessed whose work per dollar is known."""
    return next((assessment for assessment in assessments if assessment.work_per_usd), None)
