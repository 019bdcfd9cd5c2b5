"""Reads the widths of an exported elastic job, and how fast it and earlier runs trained at each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from trainmaster.core.durations.work_speeds import MeasuredWidths
from trainmaster.core.jobs.widths import LEAST_WIDTHS, MOST_WIDTHS, Widths

from trainmaster_client.simulate.histories.line_fields import MOST_INSTANCES, Fields
from trainmaster_client.simulate.histories.line_problems import shown

_MOST_SPEED = 10**12
"""Most steps, or measured work, in 1,000 seconds that are taken for a speed."""
_MOST_RUNS = 10**6


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedWidths:
    """Widths of an elastic job, as a line has them."""

    widths: Widths
    speeds: Mapping[int, int]
    """Steps in 1,000 seconds by width, of those at which its program reported any."""


def elastic_of(
    job: Fields, instances: Mapping[str, int], attempt_widths: Sequence[int | None]
) -> ExportedWidths | None:
    """Read ``elastic`` of a job's line; what is wrong with it is noted.

    Args:
        job: The line.
        instances: Its instances by type.
        attempt_widths: Instances of each of its attempts; None where they are not exported.
    """
    if not job.has("elastic"):
        return None
    fields = job.part("elastic")
    widths = _widths(fields, instances)
    if widths is None:
        return None
    known = ", ".join(str(count) for count in widths.counts)
    for number, width in enumerate(attempt_widths):
        if width is not None and width not in widths.counts:
            job.refuse(
                f"attempts[{number}].instances",
                f"{width} is not one of the job's widths",
                f"write one of {known}",
            )
    if fields.has("measured"):
        widths = replace(widths, measured=_measured(fields.part("measured")))
    return ExportedWidths(
        widths=widths, speeds=_speeds(fields.part("speeds"), known) if fields.has("speeds") else {}
    )


def _widths(fields: Fields, instances: Mapping[str, int]) -> Widths | None:
    counts = fields.wholes("widths", least=1, most=MOST_INSTANCES)
    if counts is None:
        return None
    if list(counts) != sorted(set(counts)) or not LEAST_WIDTHS <= len(counts) <= MOST_WIDTHS:
        fields.refuse(
            "widths",
            f"{shown(list(counts))} is no list of widths",
            f"write {LEAST_WIDTHS} to {MOST_WIDTHS} counts in ascending order, e.g. [1, 2, 4]",
        )
        return None
    if tuple(instances.values()) != (counts[-1],):
        fields.refuse(
            "widths",
            f"{shown(list(counts))} does not end with the job's instances",
            "write the instances of one type, as many as the largest width",
        )
        return None
    return Widths(counts=counts)


def _measured(fields: Fields) -> MeasuredWidths | None:
    """Read the speeds of earlier runs; what is wrong with them is noted."""
    counts = fields.wholes("widths", least=1, most=MOST_INSTANCES)
    speeds = fields.wholes("per_1000_seconds", least=1, most=_MOST_SPEED)
    runs = fields.whole("runs", least=1, most=_MOST_RUNS)
    other_settings = fields.flag("other_settings")
    if counts is None or speeds is None:
        return None
    if list(counts) != sorted(set(counts)) or not LEAST_WIDTHS <= len(counts) <= MOST_WIDTHS:
        fields.refuse(
            "widths",
            f"{shown(list(counts))} is no list of measured widths",
            f"write {LEAST_WIDTHS} to {MOST_WIDTHS} counts in ascending order, e.g. [2, 4]",
        )
        return None
    if len(speeds) != len(counts):
        fields.refuse(
            "per_1000_seconds",
            f"{shown(list(speeds))} has not one speed for each of {shown(list(counts))}",
            "write as many speeds as widths",
        )
        return None
    return MeasuredWidths(counts=counts, per_1000_s=speeds, runs=runs, other_settings=other_settings)


def _speeds(speeds: Fields, known: str) -> dict[int, int]:
    speed_by_width: dict[int, int] = {}
    for name in speeds.names:
        if name in known.split(", "):
            speed_by_width[int(name)] = speeds.whole(name, least=1, most=_MOST_SPEED)
        else:
            speeds.refuse(name, "is not one of the job's widths", f"write one of {known}")
    return speed_by_width
