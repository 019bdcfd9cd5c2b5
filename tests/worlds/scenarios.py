"""What is played in the harsh world, and what must hold: each check can be recomputed from the facts."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from types import MappingProxyType
from typing import Any

from local.worlds import HARSH, KIND, World, changed
from tests.builders import A
from tests.worlds.plane import MINUTE, Plane
from tests.worlds.played import Played
from tests.worlds.sagemaker import START_UP_SECONDS

POOL = "main"
SUBMISSIONS_PER_MINUTE = 10_000
LATE = (300.0, 300.0)
"""Seconds: all events five minutes late."""
MOST_OVERHEAD = 1.15
"""Of the bound that no scheduler can beat."""
LEAST_BUSY = 0.875
"""While as many wait as there is quota for, this share of it is at work (35 of 40)."""
LOOK_MINUTES = 10


def policy(capacity: int, types: Mapping[str, str] = MappingProxyType({POOL: A})) -> dict[str, Any]:
    """A pool of one type each."""
    limits = {"max_submissions_per_minute": SUBMISSIONS_PER_MINUTE}
    pools = [{"name": name, "capacity": {one: capacity}, "limits": limits} for name, one in types.items()]
    return {"pools": pools}


# ---- the load of DeepRacer


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    running: int = 38
    left_seconds: float = 3200.0
    submitted: int = 500
    run_seconds: float = 600.0
    within_seconds: float = 25.0
    quota: int = 40
    capacity: int = 60

    @property
    def bound_minutes(self) -> float:
        """No scheduler is faster: every slot of the quota is busy all the time."""
        work = self.submitted * (self.run_seconds + START_UP_SECONDS) + self.running * self.left_seconds
        return work / self.quota / MINUTE


def deepracer(load: Load, *, seed: int) -> Played:
    """A quota below the pool, hundreds submitted at once, every event late."""
    plane = Plane(KIND, policy(load.capacity), seed=seed)
    limit = ceil(load.bound_minutes * MOST_OVERHEAD)
    looks: list[dict[str, Any]] = []
    with plane.deployed():
        began = _with_running(plane, load.running)
        plane.world_becomes(changed(HARSH, {"quotas": {A: load.quota}, "event_delay_seconds": list(LATE)}))
        for name in plane.names:
            plane.sagemaker.ends_after(name, load.left_seconds)
        for number in range(load.submitted):
            at = began + number * load.within_seconds / load.submitted
            plane.submit(f"car-{number}", at=at, seconds=load.run_seconds)
        for look in _looks(plane, began, limit):
            looks.append(look)
            if look["states"] == {"completed": load.running + load.submitted}:
                break
    facts = _facts(plane, began, load_=_shown(load), looks=looks)
    played = Played(facts)
    everything = load.running + load.submitted
    played.check(
        "everything runs and nothing fails", expected={"completed": everything}, actual=looks[-1]["states"]
    )
    played.at_most(f"minutes until all are over (bound {load.bound_minutes:.0f})", limit, facts["minutes"])
    _slots_at_work(played, load)
    played.one_create_each(everything)
    played.nothing_killed()
    return played


def _slots_at_work(played: Played, load: Load) -> None:
    """What the pool has given away, at every look; and what trained, on average over them.

    With every event late an end is known when somebody looks, a minute later at worst: ends of one wave leave
    slots idle for this long, which a single look may happen to see.
    """
    full = [look for look in played.facts["looks"] if look["waiting"] >= load.quota]
    enough = int(load.quota * LEAST_BUSY)
    least = min((look["held"] for look in full), default=0)
    what = f"slots given away at each look while {load.quota} wait"
    played.check(what, expected=f">= {enough}", actual=least, ok=least >= enough)
    mean = round(sum(look["busy"] for look in full) / max(1, len(full)), 1)
    what = f"instances at work while {load.quota} wait, mean of the looks"
    played.check(what, expected=f">= {enough}", actual=mean, ok=mean >= enough)


def _looks(plane: Plane, began: float, limit: int) -> Iterator[dict[str, Any]]:
    """Every ten minutes, and each minute once nobody waits."""
    minutes, waiting = 0, 1
    while minutes <= limit:
        minutes += LOOK_MINUTES if waiting else 1
        plane.timeline.run(began + minutes * MINUTE)
        states = plane.states()
        waiting = states.get("pending", 0)
        held = sum(plane.pool_state(POOL).used.values())
        busy = plane.sagemaker.busy()
        yield {"minute": minutes, "busy": busy, "held": held, "waiting": waiting, "states": states}


def _with_running(plane: Plane, jobs: int, *, types: Sequence[str] = (A,)) -> float:
    """So many that run and do not end by themselves; the instant at which a minute begins then."""
    for number in range(jobs):
        resources = {"InstanceType": types[number % len(types)], "InstanceCount": 1, "VolumeSizeInGB": 10}
        plane.submit(f"old-{number}", at=number * 0.02, seconds=None, ResourceConfig=resources)
    for minute in range(1, 30):
        plane.timeline.run(minute * MINUTE - 1)
        if plane.states() == {"running": jobs}:
            break
    plane.forget()
    return plane.timeline.now + 1


def _facts(plane: Plane, began: float, load_: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    first = set(plane.names)
    ended = [job.ended_at for job in plane.jobs() if job.ended_at is not None]
    over = max(ended, default=plane.clock()) - plane.clock()
    return {
        "load": dict(load_),
        "began_second": began,
        "minutes": round((plane.timeline.now + over.total_seconds() - began) / MINUTE, 1),
        "created": {
            "accepted": len(plane.sagemaker.stub.creates),
            "first attempts": len(first.intersection(plane.sagemaker.stub.creates)),
        },
        **plane.facts(),
        **more,
    }


def _shown(load: Any) -> dict[str, Any]:
    return {name: getattr(load, name) for name in load.__slots__}


# ---- many live jobs

LIVE_TYPES = {f"pool-{letter}": f"ml.{letter}.xlarge" for letter in "abcde"}
"""Five pools."""
RINGS = (*LIVE_TYPES, "-")
LIVE_MINUTES = 21
LONGEST_RECONCILE = 50.0
LOOKED_AT_WITHIN = 600.0


def live_jobs(jobs: int, world: World, *, seed: int, minutes: int = LIVE_MINUTES) -> Played:
    """Nothing happens, and everybody is looked after."""
    plane = Plane(KIND, policy(jobs, LIVE_TYPES), seed=seed)
    with plane.deployed():
        began = _with_running(plane, jobs, types=list(LIVE_TYPES.values()))
        plane.world_becomes(world)
        plane.timeline.run(began + minutes * MINUTE)
    rings = [(at, pool) for at, by, pool in plane.doorbell.rings if by == "reconcile" and at >= began]
    rung = Counter((int((at - began) // MINUTE), pool) for at, pool in rings)
    silent = Counter(pool for pool in RINGS for minute in range(minutes) if not rung[minute, pool])
    gaps = [_longest_gap(plane, name, began) for name in plane.names]
    facts = _facts(
        plane, began, {"jobs": jobs}, minutes_without_ring=dict(silent), longest_gaps=sorted(gaps)[-5:]
    )
    played = Played(facts)
    played.nothing_killed()
    played.check("every pool is rung each minute", expected={}, actual=dict(silent))
    played.at_most(
        "seconds of the longest reconcile",
        LONGEST_RECONCILE,
        facts["invocations"]["reconcile"]["longest_seconds"],
    )
    played.at_most("seconds until every live job is looked at", LOOKED_AT_WITHIN, max(gaps))
    played.check("all still run", expected={"running": jobs}, actual=facts["states"])
    return played


def _longest_gap(plane: Plane, name: str, began: float) -> float:
    seen = [began, *(at for at in plane.sagemaker.looked_at.get(name, ()) if at >= began), plane.timeline.now]
    return round(max(after - before for before, after in pairwise(seen)), 1)


# ---- many starts, slow calls

START_MINUTES = 8


def starts(jobs: int, *, seed: int, minutes: int = START_MINUTES) -> Played:
    """All of them fit, and the account takes one Create a second."""
    plane = Plane(HARSH, policy(jobs), seed=seed)
    with plane.deployed():
        for number in range(jobs):
            plane.submit(f"job-{number}", at=number * 0.05, seconds=None)
        plane.timeline.run(minutes * MINUTE)
    created = plane.account.calls
    facts = _facts(plane, 0.0, {"jobs": jobs}, trains=len(plane.sagemaker.trains_at))
    played = Played(facts)
    played.check(f"all run within {minutes} minutes", expected={"running": jobs}, actual=facts["states"])
    played.one_create_each(jobs)
    played.at_most("throttled tries of Create", jobs, created.throttled["CreateTrainingJob"])
    played.check("no start is charged", expected=0, actual=sum(job.attempt for job in plane.jobs()))
    played.nothing_killed()
    return played


SLOW = changed(KIND, {"latency_seconds": {"p50": 1, "p99": 1}, "rates": {"DescribeTrainingJob": 2}})
"""A second for each call about training jobs, two descriptions a second."""
FREE_WITHIN = 180.0
START_LIMIT_MINUTES = 15
TRAINED_SECONDS = 607.0
"""From the start of the last one until many end at once."""


def slow_calls(jobs: int, ends: int, *, seed: int) -> Played:
    """All of them fit; then many end at the same instant."""
    plane = Plane(SLOW, policy(jobs), seed=seed)
    with plane.deployed():
        for number in range(jobs):
            plane.submit(f"job-{number}", at=number * 0.05, seconds=None)
        minute = 0
        while plane.states() != {"running": jobs} and minute < START_LIMIT_MINUTES:
            minute += 1
            plane.timeline.run(minute * MINUTE)
        started = plane.states()
        instant = plane.timeline.now + TRAINED_SECONDS
        plane.timeline.run(instant)
        for name in plane.names[:ends]:
            plane.sagemaker.end(name, "Completed")
        plane.timeline.run(instant + FREE_WITHIN)
    used = sum(plane.pool_state(POOL).used.values())
    facts = _facts(plane, 0.0, {"jobs": jobs, "ends": ends}, started=started, used=used)
    played = Played(facts)
    played.check("all start", expected={"running": jobs}, actual=started)
    played.one_create_each(jobs)
    played.check("ends are applied, once", expected=_left(jobs, ends), actual=facts["states"])
    played.check("their slots are free within 3 minutes", expected=jobs - ends, actual=used)
    played.nothing_killed()
    return played


def _left(jobs: int, ends: int) -> dict[str, int]:
    return {"completed": ends, "running": jobs - ends}


SLOW_LOOKS = changed(KIND, {"latency_seconds": {"p50": 1, "p99": 1}})
