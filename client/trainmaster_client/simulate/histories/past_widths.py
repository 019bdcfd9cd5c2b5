"""Counts the attempts of elastic jobs as if each had trained at its job's largest width."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from trainmaster_client.simulate.engine.past_jobs import PastWidths, shown_speeds
from trainmaster_client.simulate.histories.elastic_fields import ExportedWidths
from trainmaster_client.simulate.histories.export_lines import ExportedAttempt, ExportedJob


def past_widths(line: ExportedJob) -> PastWidths | None:
    """Return the widths of an exported job with the speed at each; None if it is not elastic."""
    if line.elastic is None:
        return None
    widths = line.elastic.widths
    return PastWidths(widths=widths, speeds=shown_speeds(widths, line.elastic.speeds))


def shows_speeds(elastic: ExportedWidths) -> bool:
    """Tell whether the job has shown its speed at every width."""
    return all(count in elastic.speeds for count in elastic.widths.counts)


def at_largest_width(line: ExportedJob) -> ExportedJob:
    """Return the line with all times of training as if at the largest width, where as much takes less long.

    So a narrow attempt does not make the job longer than it is: what is computed from the attempts (training
    that counted, losses, checkpoint interval) is in the unit in which a replay counts an elastic job.
    """
    elastic = past_widths(line)
    if elastic is None:
        return line
    return replace(line, attempts=tuple(_attempts(line.attempts, elastic)))


def _attempts(attempts: Iterable[ExportedAttempt], elastic: PastWidths) -> Iterator[ExportedAttempt]:
    for attempt in attempts:
        speed = 1.0 if attempt.instances is None else elastic.speeds[attempt.instances]
        yield replace(
            attempt,
            speed=speed,
            lost=attempt.lost * speed,
            trained=None if attempt.trained is None else attempt.trained * speed,
            intervals=tuple(length * speed for length in attempt.intervals),
        )


def as_they_trained(
    counted: Iterable[ExportedAttempt], exported: Iterable[ExportedAttempt]
) -> Iterator[ExportedAttempt]:
    """Yield attempts in the time that they took, with the losses that were computed at the largest width."""
    for at_largest, own in zip(counted, exported, strict=True):
        yield replace(own, lost=at_largest.lost / at_largest.speed)
