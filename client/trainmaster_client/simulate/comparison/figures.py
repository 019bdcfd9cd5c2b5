"""Computes a replay's figures from its attempts and the history alone, so that anybody can repeat it."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from trainmaster_client.simulate.comparison.devices import Devices
from trainmaster_client.simulate.comparison.outcomes import Fate, JobOutcome
from trainmaster_client.simulate.comparison.priority_classes import PriorityClass, class_of
from trainmaster_client.simulate.engine.replays import RESIZED, Replay, ReplayedAttempt, WarmInterval

HOUR_S = 3600
MEDIAN, HIGH, HIGHEST = 0.5, 0.9, 0.99


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """Waits of some jobs, in seconds. Infinite: the quantile lies among jobs that never started."""

    jobs: int
    never_started: int
    """Jobs in the queue when the replay ended. They count as waits without end."""
    p50_s: float | None
    """Median wait; None if there is no job."""
    p90_s: float | None
    p99_s: float | None
    mean_delay_s: float | None
    """Mean of completion - submission - training, over jobs that ended."""
    p50_delay_s: float | None
    p90_delay_s: float | None
    p99_delay_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Times of devices: GPUs, or instances where not every type has GPUs."""

    goodput: float | None
    """Training that lasted, as a share of the capacity until the last submission; None: capacity unknown."""
    utilisation: float | None
    """Capacity held by attempts, likewise."""
    weighted_delay_h: float
    """Mean of completion - submission - training, weighted by class; of the jobs that ended."""
    longest_delay_h: float
    waste_h: float
    """Lost work and stopping."""
    lost_h: float
    startup_h: float
    idle_warm_h: float
    preemptions: int
    interruptions: int
    starts: int
    warm_starts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """The basis that figures of all replays of a history share."""

    devices: Devices
    classes: Sequence[PriorityClass]
    horizon_s: int
    """The last submission: shares of the capacity are counted up to here."""

    def weight(self, outcome: JobOutcome) -> int:
        return class_of(outcome.job.priority, self.classes).weight


def quantile(ordered: Sequence[float], share: float) -> float | None:
    """Return the value with this share of the values below it; None if there are none."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None


def waits_of(outcomes: Iterable[JobOutcome]) -> Waits:
    """Return the waits of jobs that had to start: refused and withdrawn jobs are counted elsewhere."""
    started = list(outcomes)
    waits = sorted(wait for outcome in started if (wait := outcome.wait_s) is not None)
    delays = sorted(delay for outcome in started if (delay := outcome.delay_s) is not None)
    return Waits(
        jobs=len(waits),
        never_started=sum(wait == math.inf for wait in waits),
        p50_s=quantile(waits, MEDIAN),
        p90_s=quantile(waits, HIGH),
        p99_s=quantile(waits, HIGHEST),
        mean_delay_s=sum(delays) / len(delays) if delays else None,
        p50_delay_s=quantile(delays, MEDIAN),
        p90_delay_s=quantile(delays, HIGH),
        p99_delay_s=quantile(delays, HIGHEST),
    )


def figures_of(replay: Replay, outcomes: Mapping[str, JobOutcome], basis: Basis) -> Figures:
    attempts, devices = replay.attempts, basis.devices
    horizon_s = basis.horizon_s
    there = capacity_device_s(replay, devices, horizon_s=horizon_s)
    stopped = [attempt for attempt in attempts if attempt.end in {"preempted", RESIZED}]
    delays = [
        (basis.weight(outcome), s) for outcome in outcomes.values() if (s := outcome.delay_s) is not None
    ]
    lost = sum(attempt.lost_s * devices.of(attempt) for attempt in attempts)
    lasting = sum(_lasting_s(attempt, horizon_s) * devices.of(attempt) for attempt in attempts)
    held = sum(
        max(0, min(attempt.end_s, horizon_s) - attempt.start_s) * devices.of(attempt) for attempt in attempts
    )
    return Figures(
        goodput=lasting / there if there else None,
        utilisation=held / there if there else None,
        weighted_delay_h=weighted_mean(delays) / HOUR_S,
        longest_delay_h=max((s for _, s in delays), default=0) / HOUR_S,
        waste_h=(lost + sum(attempt.stopping_s * devices.of(attempt) for attempt in stopped)) / HOUR_S,
        lost_h=lost / HOUR_S,
        startup_h=sum((attempt.train_s - attempt.start_s) * devices.of(attempt) for attempt in attempts)
        / HOUR_S,
        idle_warm_h=sum(idle_s(interval) * devices.of(interval) for interval in replay.warm) / HOUR_S,
        preemptions=sum(attempt.end == "preempted" for attempt in attempts),
        interruptions=sum(attempt.end == "interrupted" for attempt in attempts),
        starts=len(attempts),
        warm_starts=sum(attempt.warm for attempt in attempts),
    )


def capacity_devices(replay: Replay, devices: Devices) -> int:
    """Return the capacity of all pools together, as it was replayed: the largest by a calendar, no plans."""
    return sum(
        count * devices.each(instance_type)
        for by_choice in replay.capacity.values()
        for by_type in by_choice.values()
        for instance_type, count in by_type.items()
    )


def capacity_device_s(replay: Replay, devices: Devices, *, horizon_s: int) -> int:
    """Return the device-seconds that there were until the horizon, by calendars and windows of plans."""
    constant = replace(
        replay,
        capacity={
            pool: {kind: by_type for kind, by_type in kinds.items() if kind != "on-demand"}
            if pool in replay.steps
            else kinds
            for pool, kinds in replay.capacity.items()
        },
    )
    by_calendar = 0
    for steps in replay.steps.values():
        ends = [*(step.since_s for step in steps[1:]), horizon_s]
        for step, end in zip(steps, ends, strict=True):
            lasts_s = max(0, min(end, horizon_s) - step.since_s)
            by_calendar += lasts_s * sum(count * devices.each(name) for name, count in step.instances.items())
    on_plans = sum(
        max(0, min(window.until_s, horizon_s) - max(window.since_s, 0))
        * window.instances
        * devices.each(plan.instance_type)
        for plan in replay.plans
        for window in plan.windows
    )
    return capacity_devices(constant, devices) * horizon_s + by_calendar + on_plans


def plan_devices(replay: Replay, devices: Devices) -> int:
    """Return the devices of all training plans together, each in its largest window."""
    return sum(plan.most * devices.each(plan.instance_type) for plan in replay.plans)


def idle_s(interval: WarmInterval) -> int:
    return max(0, interval.until_s - interval.since_s)


def weighted_mean(values: Iterable[tuple[float, float]]) -> float:
    """Return the mean of (weight, value) pairs; 0 if there are none."""
    known = list(values)
    weights = sum(weight for weight, _ in known)
    return sum(weight * value for weight, value in known) / weights if weights else 0.0


def counted(outcomes: Iterable[JobOutcome]) -> dict[Fate, int]:
    """Count the jobs by their fate."""
    counts = dict.fromkeys(Fate, 0)
    for outcome in outcomes:
        counts[outcome.fate] += 1
    return counts


def lasting_s(*, train_s: int, stopped_s: int, lost_s: int, horizon_s: int) -> int:
    """Return the training of an attempt that was not lost, up to the horizon."""
    return max(0, min(stopped_s - lost_s, horizon_s) - min(train_s, horizon_s))


def _lasting_s(attempt: ReplayedAttempt, horizon_s: int) -> int:
    return lasting_s(
        train_s=attempt.train_s,
        stopped_s=attempt.end_s - attempt.stopping_s,
        lost_s=attempt.lost_s,
        horizon_s=horizon_s,
    )
