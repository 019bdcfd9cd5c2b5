"""Estimate when a waiting job starts: ``plan()`` rolled forward through drawn futures."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from statistics import mean, median, pvariance

from trainmaster.core.forecast.arrivals import Arrivals, shape_of
from trainmaster.core.forecast.durations import Durations, LaneKey, lane_of
from trainmaster.core.forecast.forecast import Future, Outlook
from trainmaster.core.forecast.run_times import RunTimes
from trainmaster.core.forecast.sampling import Chance
from trainmaster.core.jobs.model import JobState
from trainmaster.core.planning.snapshot import Snapshot, WaitingJob
from trainmaster.core.policy import PoolPolicy

MOST_AHEAD = 500
"""Most queue entries in a question; of jobs behind them only lane and number are known."""
MOST_UNSEEN = 2000
"""Most stand-ins in one future for jobs of which only the lane is known."""
MOST_DRAWS = 40
MOST_LOOKS = 150_000
"""Most jobs looked at in all passes of all futures: about a second of CPU. Source: measured, 5 to 7 us
each."""
MOST_SHAPES = 250
"""Most lanes of jobs ahead: with more, a second of CPU does not see one future to its end. Source:
measured."""
MOST_RUNNING = 5000
"""Most running jobs: with more, every step of a future takes too long."""
HOUR, DAY = 3600.0, 24 * 3600.0
REACTION_SECONDS = 60.0
"""Time added to every wait of a future: what it decides at once takes a pass, the release of a warm pool,
a second victim. Source: measured, docs/benchmarks.md; between 60 and 90 makes no difference."""
ERROR_OF_AN_HOUR, ERROR_OF_A_DAY = 0.75, 0.3
"""Standard deviations of the logarithm of a wait that the futures do not show: people submit in bursts, and
the jobs of a burst are alike. A long wait averages that out. Source: fitted to some windows and checked on
others, docs/benchmarks.md."""
Z90 = 1.2816
"""Standard deviations from the middle of a normal distribution to its quantile of 90 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """When does ``job`` start?"""

    snapshot: Snapshot
    job: WaitingJob
    """The job to be estimated; whether it is in the snapshot makes no difference."""
    ahead: tuple[WaitingJob, ...]
    """First of the jobs that go before it, at most ``MOST_AHEAD``, without the job itself."""
    unseen: Mapping[LaneKey, int] = field(default_factory=dict)
    """Number of further jobs that go before it, by lane."""
    pool: PoolPolicy
    run_times: Mapping[LaneKey, RunTimes]
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StartEstimate:
    """The band of a likely start: half of the drawn starts are before ``p50``, nine of ten before ``p90``."""

    p50: datetime
    p90: datetime


def too_much(question: Question) -> str | None:
    """Say in words what makes the question too large to be worked out; None if nothing does."""
    if len(_lanes_ahead(question)) > MOST_SHAPES:
        return f"jobs of more than {MOST_SHAPES} different shapes go before it"
    if len(question.snapshot.running) > MOST_RUNNING:
        return f"more than {MOST_RUNNING} jobs run in the pool"
    return None


def lanes_of(question: Question) -> tuple[LaneKey, ...]:
    """Return the lanes whose run times are needed: of the job, those ahead, and most of those that run."""
    running = Counter(lane_of(job) for job in question.snapshot.running)
    most_of_them = (lane for lane, _ in running.most_common(MOST_SHAPES))
    return tuple(dict.fromkeys((lane_of(question.job), *_lanes_ahead(question), *most_of_them)))


def _lanes_ahead(question: Question) -> dict[LaneKey, None]:
    """Return the lanes of the jobs ahead, each once, in their turn."""
    return dict.fromkeys((*(lane_of(job) for job in question.ahead), *question.unseen))


def _always() -> bool:
    return True


def estimate(question: Question, *, seed: str, in_time: Callable[[], bool] = _always) -> StartEstimate | None:
    """Return the band in which the job is likely to start; None if it starts in no future that was drawn.

    Args:
        question: The pool and the queue as they are.
        seed: Equal seeds give equal answers to equal questions, as long as there is time for all futures.
        in_time: Returns False once no more time is to be spent; the draws made by then are the answer.
    """
    if question.snapshot.blocked:
        return None
    return band(waits_drawn(question, seed=seed, in_time=in_time), now=question.now)


def waits_drawn(question: Question, *, seed: str, in_time: Callable[[], bool] = _always) -> list[timedelta]:
    """Return how long the job waits, in as many futures as there is time for.

    If more jobs come ahead than can start, that cannot last: then half of them come, or half of those.
    """
    if not in_time():
        return []
    outlook = Outlook(
        snapshot=question.snapshot,
        waiting=(*question.ahead, *_unseen(question), question.job),
        pool=question.pool,
        durations=Durations.of(
            question.run_times, question.snapshot.running, question.ahead, now=question.now
        ),
        now=question.now,
    )
    arrivals = Arrivals(
        pool=question.pool,
        run_times=question.run_times,
        saving=_saving(question),
        asking=question.job,
        now=question.now,
    )
    waits: list[timedelta] = []
    looks, share = 0, 1.0
    for number in range(MOST_DRAWS):
        coming = arrivals.drawn(f"{seed}/{number}", share=share)
        future = Future(outlook, coming, Chance(f"{seed}/{number}"))
        wait = future.start_of(question.job.name, most_looks=MOST_LOOKS, in_time=in_time)
        if wait is not None:
            waits.append(wait)
        if future.grows and not waits:
            share /= 2
        looks += future.looks
        if looks + future.looks > MOST_LOOKS or not in_time():
            break
    return waits


def band(waits: Sequence[timedelta], *, now: datetime) -> StartEstimate | None:
    """Fit a logarithmic normal distribution to the waits, made wider by what the model cannot know."""
    if not waits:
        return None
    logs = [math.log(wait.total_seconds() + REACTION_SECONDS) for wait in waits]
    middle = median(logs)
    # Variances of independent errors add up: that between the futures, and that of the model itself.
    spread = math.hypot(math.sqrt(pvariance(logs)), _model_error(middle))
    p50, p90 = (timedelta(seconds=math.exp(middle + z * spread)) for z in (0, Z90))
    return StartEstimate(p50=now + p50 if any(waits) else now, p90=now + p90)


def _saving(question: Question) -> float:
    """Return the share of the known jobs that write checkpoints."""
    waiting = [job.has_checkpoint for job in (*question.ahead, question.job)]
    return mean([*waiting, *(job.has_checkpoint for job in question.snapshot.running)])


def _model_error(log_of_wait: float) -> float:
    """Return the error of the model, which falls with the logarithm of the wait, from an hour to a day."""
    part = (log_of_wait - math.log(HOUR)) / math.log(DAY / HOUR)
    return ERROR_OF_AN_HOUR + min(max(part, 0.0), 1.0) * (ERROR_OF_A_DAY - ERROR_OF_AN_HOUR)


def _unseen(question: Question) -> Iterator[WaitingJob]:
    """Yield stand-ins for jobs of which only the lane is known, last of those ahead."""
    total = sum(question.unseen.values())
    part = min(1.0, MOST_UNSEEN / total) if total else 0.0
    chance, saving = Chance(f"{question.job.name}/unseen"), _saving(question)
    for (team, lane), count in sorted(question.unseen.items()):
        shape = shape_of(lane)
        if shape is None:
            continue
        for number in range(round(count * part)):
            yield replace(
                question.job,
                name=f"~{team}~{lane}~{number}",  # '~' is in no job's name
                team=team,
                shapes=(shape,),
                score=question.job.score - 1,
                state=JobState.PENDING,
                predicted=None,
                trained=None,
                futile=None,
                has_checkpoint=chance.draw() < saving,
            )
