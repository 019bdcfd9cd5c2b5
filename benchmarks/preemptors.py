"""CPU of one plan where many urgent jobs find a full pool: ``python -m benchmarks.preemptors``.

Every type is full of preemptible jobs of random sizes, ages and prices; each preemptor asks for 1 to 16
instances of one of them. With quotas every second team borrows; or none may, and each uses all that it may.
Each world is planned without a price and, as by default, with one.
"""

import argparse
import gc
import time
from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from random import Random

from trainmaster.core.jobs.attempts import CheckpointState
from trainmaster.core.jobs.instances import Capacity, Shape, Vector, total
from trainmaster.core.jobs.model import JobState, epoch_ms
from trainmaster.core.planning.actions import Plan, Preempt
from trainmaster.core.planning.planner import plan
from trainmaster.core.planning.snapshot import ExpectedRun, RunningJob, Snapshot, WaitingJob
from trainmaster.core.policy import PoolPolicy, Preemption, PreemptionCost, Quota

from benchmarks.tables import Row, aligned

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
TYPES = tuple(Capacity(f"ml.g5.{size}xlarge") for size in (2, 4, 8, 12))
WIDTHS = (1, 1, 1, 2, 4, 8)
WIDEST = 16
PRIORITIES = 10
URGENT = 500
HOUR_MS = 3_600_000
MOST_RUNNING = 20_000
MOST_TIMES = 1.8
"""Most CPU that a plan with price may take, as a multiple of one without, with ``MOST_RUNNING`` jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """A full pool and who presses into it."""

    running: int
    preemptors: int
    teams: int = 8
    with_quotas: bool = True
    may_borrow: bool = True
    with_price: bool = False
    seed: int = 0


def crowded(crowd: Crowd) -> tuple[Snapshot, PoolPolicy]:
    draw = Random(crowd.seed)
    running = tuple(_runs(number, crowd, draw) for number in range(crowd.running))
    used = total(job.vector for job in running)
    waiting = tuple(_waits(number, crowd, draw) for number in range(crowd.preemptors))
    pool = PoolPolicy(
        name="main",
        capacity={str(capacity): count for capacity, count in used.items()},
        quotas=_quotas(crowd, running) if crowd.with_quotas else {},
        preemption=Preemption(cost=PreemptionCost(enabled=crowd.with_price)),
    )
    return Snapshot(used=used, waiting=waiting, running=running), pool


def cpu_seconds(snapshot: Snapshot, pool: PoolPolicy) -> tuple[float, Plan]:
    """Measure the CPU seconds of one plan; nothing is kept from one to the next."""
    gc.collect()  # or what the plan before has left is looked through in this one
    began = time.process_time()
    decided = plan(snapshot, pool, now=NOW)
    return time.process_time() - began, decided


def _quotas(crowd: Crowd, running: tuple[RunningJob, ...]) -> dict[str, Quota]:
    if crowd.may_borrow:
        counts = total(job.vector for job in running)
        share = {str(capacity): count // crowd.teams * 3 // 2 for capacity, count in counts.items()}
        return {_team(number): Quota(nominal=share) for number in range(0, crowd.teams, 2)}
    vectors: defaultdict[str, list[Vector]] = defaultdict(list)
    for job in running:
        vectors[job.team].append(job.vector)
    limits = {str(instance_type): 0 for instance_type in TYPES}
    return {
        team: Quota(
            nominal=limits | {str(capacity): count for capacity, count in total(held).items()},
            borrowing_limit=limits,
        )
        for team, held in vectors.items()
    }


def _runs(number: int, crowd: Crowd, draw: Random) -> RunningJob:
    since = NOW - timedelta(minutes=draw.randint(30, 2000))
    priority = draw.randrange(PRIORITIES)
    saved = since + timedelta(minutes=draw.randint(0, 25)) if draw.random() < 1 / 2 else None
    return RunningJob(
        name=f"runs-{number:06d}",
        ver=3,
        team=_team(draw.randrange(crowd.teams)),
        state=JobState.RUNNING,
        vector=_asked(draw, WIDTHS),
        priority=priority,
        score=epoch_ms(since) - priority * HOUR_MS,
        claimed_at=since,
        lease_until=since + timedelta(minutes=5),
        training_job_name=f"runs-{number:06d}",
        known_to_sagemaker=True,
        training_since=since,
        stop_sent=False,
        preemptible=draw.random() < 9 / 10,
        has_checkpoint=saved is not None,
        preemptions=draw.choice((0, 0, 1)),
        expected=ExpectedRun(ends_by=since + timedelta(hours=draw.randint(40, 90))),
        checkpoint=CheckpointState(last=saved),
        cents_per_hour=draw.choice((101, 204, 709)),
    )


def _waits(number: int, crowd: Crowd, draw: Random) -> WaitingJob:
    at = NOW - timedelta(minutes=draw.randint(0, 30))
    priority = URGENT + draw.randrange(PRIORITIES)
    return WaitingJob(
        name=f"waits-{number:06d}",
        ver=1,
        team=_team(draw.randrange(crowd.teams)),
        state=JobState.PENDING,
        shapes=(Shape(vector=_asked(draw, range(1, WIDEST + 1))),),
        priority=priority,
        score=epoch_ms(at) - priority * HOUR_MS,
        submitted_at=at,
        runs_at_most=timedelta(hours=12),
    )


def _asked(draw: Random, widths: range | tuple[int, ...]) -> Vector:
    return {draw.choice(TYPES): draw.choice(widths)}


def _team(number: int) -> str:
    return f"team-{number:03d}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, default=3, help="the least CPU of so many plans counts")
    arguments = parser.parse_args()
    tries: int = arguments.tries
    heads = ("running", "preemptors", "teams", "quotas", "victims", "ms CPU", "priced", "ms CPU", "times")
    rows: list[Row] = [heads]
    worst = 0.0
    for crowd in (
        *(
            Crowd(running=running, preemptors=preemptors, with_quotas=with_quotas)
            for running in (1_000, 5_000, MOST_RUNNING)
            for preemptors in (32, 256)
            for with_quotas in (True, False)
        ),
        *(Crowd(running=MOST_RUNNING, preemptors=256, teams=teams) for teams in (100, 1_000)),
        *(
            Crowd(running=MOST_RUNNING, preemptors=256, teams=teams, may_borrow=False)
            for teams in (8, 100, 1_000)
        ),
    ):
        free, priced = _measured(crowd, tries)
        quotas = "none" if not crowd.with_quotas else "borrow" if crowd.may_borrow else "at limit"
        times = priced.seconds / free.seconds
        figures = (free.victims, free.ms, priced.victims, priced.ms, round(times, 2))
        rows.append((crowd.running, crowd.preemptors, crowd.teams, quotas, *figures))
        worst = max(worst, times) if crowd.running == MOST_RUNNING else worst
    print("\n".join(aligned(rows)))
    if worst > MOST_TIMES:
        raise SystemExit(
            f"A plan with price takes {worst:.2f} times one without, at most {MOST_TIMES} asked."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The fastest of some plans."""

    seconds: float
    victims: int

    @property
    def ms(self) -> float:
        return round(1000 * self.seconds, 1)


def _measured(crowd: Crowd, tries: int) -> tuple[Measured, Measured]:
    """Plan without and with price in turns, so that whatever else the machine does hits both."""
    worlds = [crowded(replace(crowd, with_price=with_price)) for with_price in (False, True)]
    plans = [[cpu_seconds(*world) for world in worlds] for _ in range(tries)]
    free, priced = (
        Measured(
            seconds=min(turn[index][0] for turn in plans),
            victims=sum(
                len(action.victims) for action in plans[0][index][1].actions if isinstance(action, Preempt)
            ),
        )
        for index in range(len(worlds))
    )
    return free, priced


if __name__ == "__main__":
    main()
