"""Start estimates in a tournament: asked of each of the product's policies, and scored window by window."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

from trainmaster_client.report import Report
from trainmaster_client.simulate.engine.replay_progress import Progress
from trainmaster_client.simulate.io.processes import Work, spread

from benchmarks.replay.estimator import estimated_start
from benchmarks.replay.heats import FEW_JOBS, Draw, Field, Outcome, world_of
from benchmarks.replay.requested_times import Requests
from benchmarks.replay.rows import history_of
from benchmarks.replay.targets import COVERAGE, check_answers
from benchmarks.replay.waits import Answer, Wait, asked, sampled

LEAST_QUESTIONS = 50
"""Fewer say nothing about a share: that of 50 is out by four percentage points, typically."""
_QUESTION_WEIGHT, _JOB_WEIGHT = 1.0, 0.005
"""Seconds of CPU, about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    draw: Draw
    decider: int
    """Index of the decider in the field."""
    waits: Sequence[Wait]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One decider's answers in one window, in all draws of it."""

    window: int
    decider: str
    questions: int
    answers: Sequence[Answer]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def ask_all(
    field: Field,
    outcomes: Sequence[Outcome],
    *,
    count: int,
    progress: Progress | None = None,
    processes: int | None = None,
) -> list[Asked]:
    """Replay the product's policies once more, and ask each ``count`` times in each window."""
    units = sorted(_units(field, outcomes, count=count), key=_place)
    weights = [
        _QUESTION_WEIGHT * len(unit.waits) + _JOB_WEIGHT * len(field.windows[unit.draw.window].rows)
        for unit in units
    ]
    work = Work(task=_answers, shared=field, units=units, weights=weights)
    few = sum(len(window.rows) for window in field.windows) <= FEW_JOBS
    answers = spread(work, progress=progress, processes=1 if few else processes)
    groups = groupby(zip(units, answers, strict=True), key=lambda pair: _place(pair[0]))
    return [_together(field, list(group)) for _, group in groups]


def check_all(report: Report, asked_in: Sequence[Asked]) -> None:
    """Check each window alone: wide bands in one would make up for narrow ones in another."""
    report.facts["estimate_answers"] = [asked.as_json() for asked in asked_in]
    report.facts["estimates"] = [
        {"window": asked.window, "decider": asked.decider} | checked
        for asked in asked_in
        if (checked := _checked(report, asked)) is not None
    ]


def _checked(report: Report, answered: Asked) -> dict[str, float] | None:
    of = f"{answered.decider}-window-{answered.window}-"
    if answered.questions < LEAST_QUESTIONS:
        reason = f"{answered.questions} jobs that could be asked about waited for more than a minute"
        report.skip(f"{of}starts-under-p90", reason=reason, expected=f"{COVERAGE[0]} to {COVERAGE[1]}")
        return None
    return check_answers(report, answered.answers, asked=answered.questions, of=of)


def _units(field: Field, outcomes: Sequence[Outcome], *, count: int) -> Iterator[Unit]:
    labels = [decider.label for decider in field.deciders]
    draws = [draw for draw in field.draws if draw.requests is Requests.DRAWN] or field.draws
    for outcome in outcomes:
        draw = outcome.draw
        if draw not in draws:
            continue
        each = -(-count // sum(other_draw.window == draw.window for other_draw in draws))
        jobs = world_of(field, draw).jobs
        for run in outcome.runs:
            if run.is_product:
                waits = sampled(jobs, run.rows, count=each, seed=draw.seed)
                yield Unit(draw=draw, decider=labels.index(run.algorithm), waits=waits)


def _place(unit: Unit) -> tuple[int, int]:
    return (unit.decider, unit.draw.window)


def _answers(field: Field, unit: Unit, _: Progress) -> list[Answer]:
    world = world_of(field, unit.draw)
    policy = field.deciders[unit.decider].policy(world.capacity)
    history = history_of(world.jobs, world.account)
    return asked(unit.waits, history, policy, estimator=estimated_start, seed=unit.draw.seed)


def _together(field: Field, group: Sequence[tuple[Unit, list[Answer]]]) -> Asked:
    first, _ = group[0]
    return Asked(
        window=field.windows[first.draw.window].number,
        decider=field.deciders[first.decider].label,
        questions=sum(len(unit.waits) for unit, _ in group),
        answers=[answer for _, answers in group for answer in answers],
    )
