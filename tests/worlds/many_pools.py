"""As many pools as a stack may have: when the pass begins that a ring asks for, while some pools are slow."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from statistics import quantiles
from typing import Any
from unittest import mock

from trainmaster.services.deadline import Deadline
from trainmaster.services.scheduler.pass_summary import Summary
from trainmaster.services.scheduler.passes import Scheduler

from local.worlds import KIND, changed
from tests.worlds.plane import MINUTE, Plane
from tests.worlds.played import Played
from tests.worlds.scenarios import policy

BEGINS_WITHIN = 60.0
LONGEST_PASS = 90.0
"""Timeout of the function less what is kept for what was begun last."""
SLOW = changed(KIND, {"latency_seconds": {"p50": 1, "p99": 1}, "rates": {"CreateTrainingJob": 1}})
"""A second for each call about training jobs, one start a second in the whole account."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    pools: int = 500
    slow: int = 1
    """Pools with much to start."""
    starts_each: int = 60
    minutes: int = 4


@dataclass(slots=True)
class Passes:
    """(pool, began, ended), of those that left the pool to nobody."""

    seen: list[tuple[str, float, float]] = field(default_factory=list)

    @contextmanager
    def watched(self, plane: Plane) -> Iterator[None]:
        run = Scheduler.run

        def watched_run(scheduler: Scheduler, pool: str, *, deadline: Deadline, hops: int) -> Summary:
            began = plane.timeline.now
            summary = run(scheduler, pool, deadline=deadline, hops=hops)
            if not summary.left_alone:
                self.seen.append((pool, began, plane.timeline.now))
            return summary

        with mock.patch.object(Scheduler, "run", watched_run):
            yield

    def waits(self, rings: list[tuple[float, str, str]], *, until: float) -> list[float]:
        """From each ring to the beginning of the next pass over its pool."""
        begins: dict[str, list[float]] = {}
        for pool, began, _ in sorted(self.seen, key=lambda one: one[1]):
            begins.setdefault(pool, []).append(began)
        return [
            min((began for began in begins.get(pool, ()) if began >= at), default=until) - at
            for at, _, pool in rings
        ]


def many_pools(load: Load, *, seed: int) -> Played:
    """Each is rung each minute by ``reconcile``; nothing waits in most of them."""
    types = {f"pool-{number:03d}": f"ml.x{number}.large" for number in range(load.pools)}
    plane, passes = Plane(SLOW, policy(load.starts_each, types), seed=seed), Passes()
    slow = list(types)[:: max(1, load.pools // max(1, load.slow))][: load.slow]
    with plane.deployed(), passes.watched(plane):
        for number in range(load.starts_each * len(slow)):
            pool = slow[number % len(slow)]
            resources = {"InstanceType": types[pool], "InstanceCount": 1, "VolumeSizeInGB": 10}
            at = MINUTE + number * 0.05
            plane.submit(f"job-{number}", at=at, seconds=None, ResourceConfig=resources)
        until = (load.minutes + 1) * MINUTE
        plane.timeline.run(until)
        waits = passes.waits(_answered(plane, until), until=until)
    return _judged(plane, load, waits, [ended - began for _, began, ended in passes.seen])


def _answered(plane: Plane, until: float) -> list[tuple[float, str, str]]:
    """Rings of which more than the longest wait has passed."""
    return [ring for ring in plane.doorbell.rings if ring[0] <= until - BEGINS_WITHIN]


def _judged(plane: Plane, load: Load, waits: list[float], lengths: list[float]) -> Played:
    cuts = quantiles(waits, n=100)
    facts: dict[str, Any] = {
        "load": asdict(load),
        "rings": len(waits),
        "waits_seconds": {
            "p50": round(cuts[49], 2),
            "p99": round(cuts[98], 2),
            "longest": round(max(waits), 2),
        },
        "passes": len(lengths),
        "longest_pass_seconds": round(max(lengths), 2),
        **plane.facts(),
    }
    played = Played(facts)
    played.at_most("seconds from a ring to its pass", BEGINS_WITHIN, facts["waits_seconds"]["longest"])
    played.at_most("seconds of the longest pass", LONGEST_PASS, facts["longest_pass_seconds"])
    played.nothing_killed()
    return played
