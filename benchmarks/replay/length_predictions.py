"""Ask, job by job of a trace, how long it will train, and hold the answers to how long it did."""

import heapq
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from math import log2
from typing import Protocol

from trainmaster.core.durations.learned import LikelyLengths, likely_lengths
from trainmaster.core.durations.learned_rows import LearnedRow
from trainmaster.core.durations.traits import Traits, learned_key, notes_places

from benchmarks.replay.jobs import TraceJob
from benchmarks.replay.rows import instant

LAST = 20
"""Number of runs that the plain median looks back at."""
APART = 100
"""Pairs are of jobs of one pool, at most so many submissions apart."""
PAIRS_OF_EACH = 15
"""Number of later jobs that each job is compared with, spread evenly over those."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """Seconds of training that are predicted for one job."""

    mean_s: float
    """Jobs are ordered by it: the shorter goes first."""
    p50_s: float
    p90_s: float
    likely: LikelyLengths | None = None


class Predictor(Protocol):
    def predicted(self, job: TraceJob) -> Prediction | None:
        """Predict the length of a job at its submission; None: nothing is known."""

    def ended(self, job: TraceJob, prediction: Prediction | None) -> None:
        """Learn from a job that has ended."""


@dataclass(slots=True)
class Learned:
    """The product's prediction."""

    rows: dict[tuple[str, str], LearnedRow] = field(default_factory=dict)

    def predicted(self, job: TraceJob) -> Prediction | None:
        traits = _traits(job)
        rows = [self.rows.get(learned_key(job.team, key)) for key in traits.keys]
        likely = likely_lengths(rows, limit=traits.limit)
        if likely is None:
            return None
        return Prediction(
            mean_s=likely.remaining(timedelta(), at_most=traits.limit).total_seconds(),
            p50_s=likely.quantile(0.5).total_seconds(),
            p90_s=likely.quantile(0.9).total_seconds(),
            likely=likely,
        )

    def ended(self, job: TraceJob, prediction: Prediction | None) -> None:
        at, trained = instant(job.submit_s + job.duration_s), timedelta(seconds=job.duration_s)
        likely = None if prediction is None else prediction.likely
        place = None if likely is None else likely.place_of(trained)
        for key in _traits(job).keys:
            kind = learned_key(job.team, key)
            row = self.rows.get(kind, LearnedRow(newest=at))
            if notes_places(key):
                self.rows[kind] = row.after_placed(trained, place, ended_at=at)
            else:
                self.rows[kind] = row.after(trained, ended_at=at)


@dataclass(slots=True)
class LastRuns:
    """Median and p90 of the last 20 runs of the team in the shape, or else of all teams in it."""

    runs: dict[tuple[str, str, int], deque[int]] = field(
        default_factory=lambda: defaultdict(lambda: deque(maxlen=LAST))
    )

    def predicted(self, job: TraceJob) -> Prediction | None:
        kinds = ((job.team, job.pool, job.instances), ("", job.pool, job.instances))
        last = next((sorted(self.runs[kind]) for kind in kinds if self.runs[kind]), None)
        if last is None:
            return None
        middle = (last[(len(last) - 1) // 2] + last[len(last) // 2]) / 2
        return Prediction(mean_s=middle, p50_s=middle, p90_s=last[int(0.9 * len(last))])

    def ended(self, job: TraceJob, prediction: Prediction | None) -> None:  # noqa: ARG002
        for team in (job.team, ""):
            self.runs[team, job.pool, job.instances].append(job.duration_s)


@dataclass(slots=True)
class Requested:
    """The time that the job requests."""

    def predicted(self, job: TraceJob) -> Prediction | None:
        return Prediction(mean_s=job.requested_s, p50_s=job.requested_s, p90_s=job.requested_s)

    def ended(self, job: TraceJob, prediction: Prediction | None) -> None:
        """Learn nothing."""


PREDICTORS: Mapping[str, Callable[[], Predictor]] = {
    "learned": Learned,
    "last 20": LastRuns,
    "requested time": Requested,
}

Answers = Sequence[tuple[TraceJob, Prediction]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthFigures:
    """Measures of the answers; of no answers there are none."""

    questions: int
    pairs_percent: float
    """Pairs of jobs in the right order; jobs that are predicted alike count half."""
    log2: float
    """Mean of the absolute binary logarithm of p50 by length: 1 is a factor of two."""
    pinball_p90_s: float
    """Mean loss of the p90: a second too short costs 0.9, one too long 0.1."""
    below_p50_percent: float
    below_p90_percent: float


def asked(jobs: Sequence[TraceJob], predictor: Predictor) -> Answers:
    """Ask for each job at its submission, when those have ended that ran as if each began at once."""
    ends: list[tuple[int, int, Prediction | None]] = []
    answers = []
    for number, job in enumerate(jobs):
        while ends and ends[0][0] <= job.submit_s:
            _, earlier, predicted = heapq.heappop(ends)
            predictor.ended(jobs[earlier], predicted)
        prediction = predictor.predicted(job)
        if prediction is not None:
            answers.append((job, prediction))
        heapq.heappush(ends, (job.submit_s + job.duration_s, number, prediction))
    return answers


def figures(answers: Answers) -> LengthFigures:
    """Return the measures of at least one answer."""
    count = len(answers)
    right = list(_orders(answers))
    return LengthFigures(
        questions=count,
        pairs_percent=100 * sum(right) / len(right) if right else 50.0,
        log2=sum(abs(log2(max(said.p50_s, 1) / max(job.duration_s, 1))) for job, said in answers) / count,
        pinball_p90_s=sum(_pinball(job.duration_s - said.p90_s) for job, said in answers) / count,
        below_p50_percent=100 * sum(job.duration_s <= said.p50_s for job, said in answers) / count,
        below_p90_percent=100 * sum(job.duration_s <= said.p90_s for job, said in answers) / count,
    )


def _orders(answers: Answers) -> Iterator[float]:
    """Yield for pairs of one pool 1 if they are ordered right, 0.5 if not at all, and 0 if wrong."""
    pools: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for job, said in answers:
        pools[job.pool].append((job.duration_s, said.mean_s))
    for pool in pools.values():
        for place, (length, said_s) in enumerate(pool):
            for other, other_s in pool[place + 1 : place + APART + 1 : APART // PAIRS_OF_EACH]:
                if length != other:
                    agrees = (length - other) * (said_s - other_s)
                    yield 0.5 if agrees == 0 else float(agrees > 0)


def _pinball(short_s: float) -> float:
    return max(0.9 * short_s, -0.1 * short_s)


def _traits(job: TraceJob) -> Traits:
    return Traits(
        team=job.team,
        lane=f"{job.pool}={job.instances}",
        limit=timedelta(seconds=job.requested_s),
        name=job.job_id,
        submitter=job.user,
    )
