"""What is submitted to a twin, when, and how each job's training goes: plain data that a seed draws."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

MINUTE, HOUR = 60, 3600
ACCOUNT = "123456789012"
"""The twin's."""
SMALL, LARGE = "ml.m5.xlarge", "ml.c5.2xlarge"
TEAMS = ("atlas", "borea", "ceres", "delos")
_HELD_PER_JOB_S = 17 * MINUTE
"""How long a drawn job keeps instances on average, times their number; arrivals are spread by it."""
_WAVE_S = 3 * HOUR
"""People submit in waves: by day, not by night."""
_CREST, _TROUGH = 1.6, 0.4
"""Arrivals in the first and the second half of a wave, as a share of the mean: a queue forms and empties."""
_WIDTHS = {1: 0.75, 2: 0.18, 3: 0.05, 4: 0.02}
_PRIORITIES = {0: 0.35, 50: 0.2, 100: 0.3, 300: 0.15}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedJob:
    """One job. Seconds: ``submit_s`` since the beginning, the others of the job's training."""

    name: str
    submit_s: int
    trains_s: int
    """Training that counts, of all attempts together."""
    team: str | None = None
    """None: whoever the twin's keys belong to."""
    instance_type: str = SMALL
    count: int = 1
    is_spot: bool = False
    priority: int = 0
    saves_every_s: int | None = None
    max_runtime_s: int = 24 * HOUR
    exit_code: int = 0
    """Of its program, once it has trained so long."""
    breaks_s: tuple[int, ...] = ()
    """Where the service fails it, and it is tried again."""
    interrupted_s: int | None = None
    """Where its spot instances are taken away; it restarts."""
    cancelled_after_s: int | None = None
    """Since its submission."""
    stops_in_s: int = 60
    """How long its program takes to end after SIGTERM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedHistory:
    name: str
    policy: Mapping[str, Any]
    jobs: tuple[PlannedJob, ...]
    speed: float = 1.0
    """Of the twin's own waits: 1 is AWS's."""


FOUR_JOBS = PlannedHistory(
    name="four-jobs",
    policy={"version": 1, "pools": [{"name": "main", "capacity": {SMALL: 2}}]},
    jobs=(
        PlannedJob(name="job1", submit_s=0, trains_s=3 * HOUR, priority=1, saves_every_s=10 * MINUTE),
        PlannedJob(name="job2", submit_s=5, trains_s=2 * HOUR, priority=2, saves_every_s=10 * MINUTE),
        PlannedJob(name="job3", submit_s=30 * MINUTE, trains_s=HOUR, priority=1),
        PlannedJob(name="job4", submit_s=45 * MINUTE, trains_s=3 * HOUR, priority=3),
    ),
)
"""The story of the README: job4 preempts job1, which resumes ahead of job3."""


@dataclass(slots=True, kw_only=True)
class _Draw:
    chance: Random
    teams: tuple[str, ...] = field(default=TEAMS)
    saves_every_s: Mapping[str, int] = field(default_factory=dict)
    """By team: its jobs are of one kind of program."""

    def one_of(self, weights: Mapping[int, float]) -> int:
        (found,) = self.chance.choices(list(weights), weights=list(weights.values()))
        return found

    def happens(self, share: float) -> bool:
        return self.chance.random() < share


def drawn_history(seed: int, *, jobs: int, load: float = 0.5) -> PlannedHistory:
    """A random policy, and so many jobs of several teams that would keep its pools busy to ``load``."""
    draw = _Draw(chance=Random(seed))
    draw.saves_every_s = {team: MINUTE * draw.chance.choice((2, 5, 10)) for team in TEAMS}
    policy = drawn_policy(draw.chance)
    (pool,) = policy["pools"]
    instances = sum(pool["capacity"].values()) + sum(pool["spot_capacity"].values())
    apart_s = _HELD_PER_JOB_S / instances / load
    submit_s, found = 0.0, []
    for number in range(jobs):
        crowd = _CREST if submit_s % _WAVE_S < _WAVE_S / 2 else _TROUGH
        submit_s += draw.chance.expovariate(crowd / apart_s)
        found.append(_job(draw, number, round(submit_s), pool))
    return PlannedHistory(name=f"random-{seed}", policy=policy, jobs=tuple(found))


def drawn_policy(chance: Random) -> dict[str, Any]:
    """One pool of two types with spot; quotas, warm pools, order and preemption as the dice fall."""
    large = chance.choice((4, 5, 6))
    small = chance.choice((8, 10, 12))
    pool: dict[str, Any] = {
        "name": "main",
        "capacity": {SMALL: small, LARGE: large},
        "spot_capacity": {SMALL: chance.choice((3, 4))},
        "order": {
            "aging": chance.choice(("off", {"per": "24h", "add": 1}, {"per": "1h", "add": 50})),
            "backfill": chance.random() < 0.7,
            "shortest_first": chance.random() < 0.2,
        },
        "preemption": {
            "enabled": chance.random() < 0.9,
            "min_priority_gap": chance.choice((1, 50, 100)),
            "min_runtime": chance.choice(("0s", "2m", "5m")),
            "preempt_delay": chance.choice(("0s", "3m")),
            "max_per_job": chance.choice((1, 3)),
            "needs_checkpoint": chance.random() < 0.5,
        },
    }
    if chance.random() < 0.6:
        pool["quotas"] = _quotas(chance, {SMALL: small, LARGE: large})
    if chance.random() < 0.5:
        pool["warm_pool"] = {"keep_alive": "10m", "retain": chance.choice(("0s", "5m")), "max_idle": "30m"}
    return {"version": 1, "pools": [pool], "teams": [_team(name) for name in TEAMS]}


def _team(name: str) -> dict[str, Any]:
    return {"name": name, "principals": [f"arn:aws:iam::{ACCOUNT}:role/{name}"], "roles": "any"}


def _quotas(chance: Random, capacity: Mapping[str, int]) -> dict[str, Any]:
    """Two teams own parts of the pool, the others nothing."""
    owners = chance.sample(TEAMS, 2)
    found: dict[str, Any] = {}
    for team in owners:
        found[team] = {"nominal": {kind: count // 2 for kind, count in capacity.items()}}
        if chance.random() < 0.5:
            found[team]["borrowing_limit"] = {SMALL: 2}
    return found


def _job(draw: _Draw, number: int, submit_s: int, pool: Mapping[str, Any]) -> PlannedJob:
    chance = draw.chance
    places = {
        (kind, key): there for key in ("capacity", "spot_capacity") for kind, there in pool[key].items()
    }
    ((instance_type, key),) = chance.choices(list(places), weights=list(places.values()))
    is_spot = key == "spot_capacity"
    count = min(draw.one_of(_WIDTHS), places[instance_type, key])
    trains_s = round(min(max(chance.lognormvariate(6.2, 0.8), 3 * MINUTE), 4 * HOUR))
    saves = is_spot or draw.happens(0.6)
    breaks = (round(trains_s * chance.uniform(0.2, 0.8)),) if draw.happens(0.07) else ()
    limit_s = MINUTE * max(60, round(trains_s * chance.uniform(1.3, 4) / MINUTE))
    cancelled = None
    if draw.happens(0.06):
        cancelled = round(chance.uniform(2 * MINUTE, HOUR))
    team = chance.choice(draw.teams)
    return PlannedJob(
        name=f"job-{number:03d}",
        submit_s=submit_s,
        trains_s=trains_s,
        team=team,
        instance_type=instance_type,
        count=count,
        is_spot=is_spot,
        priority=draw.one_of(_PRIORITIES),
        saves_every_s=draw.saves_every_s[team] if saves else None,
        max_runtime_s=limit_s,
        exit_code=1 if not breaks and draw.happens(0.05) else 0,
        breaks_s=breaks,
        interrupted_s=round(trains_s * 0.5) if is_spot and draw.happens(0.15) else None,
        cancelled_after_s=cancelled,
        stops_in_s=round(chance.uniform(20, 100)),
    )
