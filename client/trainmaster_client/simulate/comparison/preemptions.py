"""Counts who took instances from whom."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trainmaster_client.simulate.comparison.devices import Devices
from trainmaster_client.simulate.comparison.outcomes import JobOutcome
from trainmaster_client.simulate.engine.replays import ReplayedAttempt

NOT_SAID = "(not known)"
"""The source does not name the preemptor."""
MOST_PAIRS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two jobs of which one stopped the other."""

    preemptor: str
    victim: str
    times: int
    lost_h: float
    """Training that the victim had to do again, in hours of its devices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preemptions:
    by_teams: Mapping[tuple[str, str], int]
    """Number of preemptions by the team of the preemptor and that of the victim."""
    worst: tuple[Pair, ...]
    """Pairs of jobs that lost most."""

    @property
    def count(self) -> int:
        return sum(self.by_teams.values())


def preemptions_of(
    attempts: Iterable[ReplayedAttempt], outcomes: Mapping[str, JobOutcome], devices: Devices
) -> Preemptions:
    stopped = [attempt for attempt in attempts if attempt.end == "preempted"]
    teams = Counter(
        (_team(attempt.preempted_by, outcomes), _team(attempt.job, outcomes)) for attempt in stopped
    )
    times: Counter[tuple[str, str]] = Counter()
    lost: Counter[tuple[str, str]] = Counter()
    for attempt in stopped:
        key = (attempt.preempted_by or NOT_SAID, attempt.job)
        times[key] += 1
        lost[key] += attempt.lost_s * devices.of(attempt)
    worst = sorted(times, key=lambda key: (-lost[key], -times[key], key))[:MOST_PAIRS]
    return Preemptions(
        by_teams=dict(teams),
        worst=tuple(
            Pair(preemptor=key[0], victim=key[1], times=times[key], lost_h=lost[key] / 3600) for key in worst
        ),
    )


def _team(job: str | None, outcomes: Mapping[str, JobOutcome]) -> str:
    outcome = outcomes.get(job) if job is not None else None
    return NOT_SAID if outcome is None else outcome.job.team
