"""Which ended attempts tell how fast their job's kind of work is done, and what they tell of widths."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from trainmaster.core.durations.work_speeds import (
    SHORTEST_TRAINING,
    MeasuredRun,
    MeasuredWidths,
    counted,
    usual_speed,
)
from trainmaster.core.jobs.attempts import Attempt
from trainmaster.core.jobs.instances import parse_vector, vector_text
from trainmaster.core.jobs.model import JobSpec
from trainmaster.core.jobs.widths import LEAST_WIDTHS


def measured_run(spec: JobSpec, attempt: Attempt) -> MeasuredRun | None:
    """Return what an ended attempt tells; None if it tells nothing that later jobs can rely on.

    Attempts of several types are left out, as no one shape did the work, and those on training plans, whose
    instances are paid for in advance.
    """
    if spec.work_kind is None or attempt.speed is None or attempt.end is None or len(attempt.vector) != 1:
        return None
    if attempt.trained is None or attempt.trained < SHORTEST_TRAINING:
        return None
    if any(capacity.is_plan for capacity in attempt.vector):
        return None
    return MeasuredRun(
        shape=vector_text(attempt.vector),
        speed=attempt.speed,
        ended_at=attempt.end.at,
        settings=spec.work_kind.partition(":")[2],
    )


def measured_widths(
    runs: Iterable[MeasuredRun], instance_type: str, *, settings: str, now: datetime
) -> MeasuredWidths | None:
    """Return how fast a kind of work was at each number of instances; None below two such numbers.

    Runs of one unit and equal hyperparameters are compared, as a larger model is slower at every width: those
    of the job's own, else those that were measured at most widths. Spot instances are as fast as others.

    Args:
        runs: What was measured of the job's kind of work.
        instance_type: Type of the job's instances.
        settings: Digest of the job's hyperparameters; empty: it has none.
        now: The instant at which the job is submitted.
    """
    alike: defaultdict[tuple[bool, str, str], list[MeasuredRun]] = defaultdict(list)
    for run in counted(runs, now=now):
        (capacity,) = parse_vector(run.shape)
        if capacity.instance_type == instance_type:
            alike[run.settings == settings, run.settings, run.speed.unit].append(run)
    groups = {key: _by_width(of_key) for key, of_key in alike.items()}
    comparable = [key for key, by_width in groups.items() if len(by_width) >= LEAST_WIDTHS]
    if not comparable:
        return None
    best = max(comparable, key=lambda key: (key[0], len(groups[key]), key))
    is_own, by_width = best[0], groups[best]
    return MeasuredWidths(
        counts=tuple(sorted(by_width)),
        per_1000_s=tuple(max(round(1000 * usual_speed(by_width[count])), 1) for count in sorted(by_width)),
        runs=sum(len(measured) for measured in by_width.values()),
        other_settings=not is_own,
    )


def _by_width(runs: Iterable[MeasuredRun]) -> Mapping[int, Sequence[MeasuredRun]]:
    by_width: defaultdict[int, list[MeasuredRun]] = defaultdict(list)
    for run in runs:
        by_width[sum(parse_vector(run.shape).values())].append(run)
    return by_width
