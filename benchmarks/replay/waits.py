"""How good start estimates are: asked when a job is submitted, compared with the start that came.

Beside them stands what anybody could say without a model: the quantiles of the last waits of the same class
in the same pool.
"""

import random
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from trainmaster.core.policy import Policy
from trainmaster_client.simulate.engine.event_loop import engine_of, groups
from trainmaster_client.simulate.engine.event_queue import What
from trainmaster_client.simulate.engine.past_jobs import History
from trainmaster_client.simulate.engine.pool_replay import PoolReplay
from trainmaster_client.simulate.engine.pool_state import PoolState
from trainmaster_client.simulate.histories.trace_draws import Klass

from benchmarks.replay.jobs import TraceJob
from benchmarks.replay.rows import Row, instant

SHORTEST_S = 60
"""Seconds above which a wait is worth a question."""
PAST_WAITS = 200
"""The baseline: the last so many waits, of those longer than SHORTEST_S."""
LEAST_PAST = 20
"""Fewer have no quantiles to compare with."""
MEDIAN, HIGH = 0.5, 0.9

Estimator = Callable[[PoolState, str, datetime], tuple[datetime, datetime] | None]
"""The p50 and the p90 of the start of a waiting job; None: no idea."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """A question, before it is asked; seconds of the trace."""

    job_id: str
    pool: str
    klass: Klass
    asked_s: int
    start_s: int
    past_p50_s: float
    """Baseline: how long jobs of its class in its pool have waited recently."""
    past_p90_s: float

    @property
    def waited_s(self) -> int:
        return self.start_s - self.asked_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A question with its answer, all in seconds after it was asked."""

    seed: int
    job_id: str
    waited_s: int
    p50_s: float
    p90_s: float
    past_p50_s: float
    past_p90_s: float

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class Questions:
    """Asks when the time has come; one for each pool of one seed."""

    def __init__(self, waits: Iterable[Wait], estimator: Estimator, *, seed: int) -> None:
        self.answers: list[Answer] = []
        """Answers that the estimator gave; questions without an answer are left out."""
        self._waits = {wait.job_id: wait for wait in waits}
        self._estimator = estimator
        self._seed = seed

    def submitted(self, name: str, table: PoolState, *, second: float) -> None:
        """Ask for the job's estimate; called when it has been submitted and the next pass is over."""
        wait = self._waits.get(name)
        if wait is None:
            return
        now = instant(second)
        estimate = self._estimator(table, name, now)
        if estimate is None:
            return
        p50, p90 = estimate
        self.answers.append(
            Answer(
                seed=self._seed,
                job_id=name,
                waited_s=wait.waited_s,
                p50_s=(p50 - now) / timedelta(seconds=1),
                p90_s=(p90 - now) / timedelta(seconds=1),
                past_p50_s=wait.past_p50_s,
                past_p90_s=wait.past_p90_s,
            )
        )


def asked(
    waits: Sequence[Wait], history: History, policy: Policy, *, estimator: Estimator, seed: int
) -> list[Answer]:
    """Replays the product, and asks on the way."""
    answers: list[Answer] = []
    for pools in groups(history, policy):
        questions = Questions(waits, estimator, seed=seed)
        engine = engine_of(history, policy, pools, PoolReplay.of, cpu_clock=time.process_time)
        while (event := engine.step()) is not None:
            state = engine.pools[event.pool].state
            if event.what is What.SUBMITTED and event.job in state.lanes:
                questions.submitted(event.job, state, second=event.second)
        answers += questions.answers
    return answers


def sampled(jobs: Sequence[TraceJob], rows: Iterable[Row], *, count: int, seed: int) -> list[Wait]:
    """Sample jobs that waited over a minute, each with what was known of earlier waits."""
    starts = {row.job_id: row.start_s for row in rows if row.attempt == 0}
    groups: dict[tuple[str, Klass], list[TraceJob]] = {}
    for job in jobs:
        if job.job_id in starts and starts[job.job_id] - job.submit_s > SHORTEST_S:
            groups.setdefault((job.pool, job.klass), []).append(job)
    waits = [wait for group in groups.values() for wait in _with_past(group, starts)]
    waits.sort(key=lambda wait: wait.job_id)
    return random.Random(seed).sample(waits, min(count, len(waits)))


def scores(answers: Sequence[Answer]) -> dict[str, float]:
    """Return shares, and mean pinball losses in seconds."""
    waited = [answer.waited_s for answer in answers]
    covered = sum(answer.waited_s <= answer.p90_s for answer in answers)
    under_p50 = sum(answer.waited_s <= answer.p50_s for answer in answers)
    covered_by_past = sum(answer.waited_s <= answer.past_p90_s for answer in answers)
    return {
        "n": len(answers),
        "p90_coverage": round(covered / len(answers), 4),
        "p50_coverage": round(under_p50 / len(answers), 4),
        "pinball_p50": round(pinball(waited, [answer.p50_s for answer in answers], MEDIAN), 1),
        "pinball_p90": round(pinball(waited, [answer.p90_s for answer in answers], HIGH), 1),
        "baseline_p50": round(pinball(waited, [answer.past_p50_s for answer in answers], MEDIAN), 1),
        "baseline_p90": round(pinball(waited, [answer.past_p90_s for answer in answers], HIGH), 1),
        "baseline_p90_coverage": round(covered_by_past / len(answers), 4),
    }


def pinball(truths: Sequence[float], guesses: Sequence[float], quantile: float) -> float:
    """Return the mean loss of quantile forecasts: least on average for the true quantile."""
    losses = [
        max(quantile * (truth - guess), (quantile - 1) * (truth - guess))
        for truth, guess in zip(truths, guesses, strict=True)
    ]
    return sum(losses) / len(losses)


def _with_past(group: Sequence[TraceJob], starts: Mapping[str, int]) -> list[Wait]:
    """Return the waits of one class and pool that had enough waits before them when submitted."""
    ended = sorted((starts[job.job_id], starts[job.job_id] - job.submit_s) for job in group)
    times = [start_s for start_s, _ in ended]
    waits: list[Wait] = []
    for job in group:
        known = bisect_right(times, job.submit_s)
        past = sorted(waited for _, waited in ended[max(0, known - PAST_WAITS) : known])
        if len(past) >= LEAST_PAST:
            waits.append(
                Wait(
                    job_id=job.job_id,
                    pool=job.pool,
                    klass=job.klass,
                    asked_s=job.submit_s,
                    start_s=starts[job.job_id],
                    past_p50_s=_quantile(past, MEDIAN),
                    past_p90_s=_quantile(past, HIGH),
                )
            )
    return waits


def _quantile(ordered: Sequence[int], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
