"""Replays with fair share: what teams use comes close to their shares, and nobody starves."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from trainmaster.core.policy import Policy
from trainmaster_client.simulate.engine.past_jobs import PastJob
from trainmaster_client.simulate.engine.replays import Replay
from trainmaster_client.simulate.io.replaying import replay

from tests.unit.client.simulate.replayed import history, instant, job, policy

HOUR, DAY = 3600, 86_400
CAPACITY = 8
SEEDS = (1, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in (2, 3)))


def rules(shares: Mapping[str, float] | None = None, *, weight: int = 10) -> Policy:
    fair = {"weight": weight, "half_life": "7d", "shares": dict(shares or {})}
    teams = [{"name": name, "roles": "any"} for name in ("atlas", "speech", "vision")]
    return policy(CAPACITY, order={"fair_share": fair}, preemption={"enabled": False}, rest={"teams": teams})


def jobs_of(team: str, count: int, chance: Random, *, until: float = HOUR) -> list[PastJob]:
    """Of one or two instances and an hour or two, submitted within some time."""
    return [
        job(
            f"{team}-{number}",
            team=team,
            at=chance.uniform(0, until),
            trains=chance.uniform(0.5, 2) * HOUR,
            n=chance.choice((1, 1, 2)),
            max_runtime=timedelta(hours=6),
        )
        for number in range(count)
    ]


def used(found: Replay, teams: Mapping[str, str], *, until: float, since: float = 0) -> dict[str, float]:
    """The part of all instance-hours that each team used."""
    hours: defaultdict[str, float] = defaultdict(float)
    for one in found.attempts:
        end = until if one.end_s is None else min(one.end_s, until)
        hours[teams[one.job]] += one.instances * max(end - max(one.start_s, since), 0)
    return {team: count / sum(hours.values()) for team, count in hours.items()}


def replayed(jobs: Sequence[PastJob], wanted: Policy, *, days: float) -> tuple[Replay, dict[str, str]]:
    """As far as so many days."""
    ordered = sorted(jobs, key=lambda one: one.submitted_at)
    found = replay(history(*ordered), wanted, label="fair", until=instant(days * DAY))
    return found, {one.name: one.team for one in ordered}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        pytest.param(
            {},
            {"atlas": 1 / 3, "speech": 1 / 3, "vision": 1 / 3},
            id="equal unless written",
            marks=pytest.mark.thorough,
        ),
        pytest.param(
            {"atlas": 3, "speech": 2}, {"atlas": 0.5, "speech": 1 / 3, "vision": 1 / 6}, id="as written"
        ),
    ],
)
def test_what_teams_use_comes_to_their_shares_within_5_percent(
    shares: dict[str, float], expected: dict[str, float], seed: int
) -> None:
    """While all of them have jobs that wait, whoever has most of those."""
    chance = Random(seed)
    jobs = [*jobs_of("atlas", 260, chance), *jobs_of("speech", 180, chance), *jobs_of("vision", 400, chance)]
    found, teams = replayed(jobs, rules(shares), days=3)
    parts = used(found, teams, until=3 * DAY)
    assert parts == pytest.approx(expected, rel=0.05), f"seed {seed}"


def test_without_it_who_floods_the_queue_has_most_of_the_pool() -> None:
    chance = Random(1)
    jobs = [*jobs_of("atlas", 100, chance), *jobs_of("vision", 400, chance)]
    found, teams = replayed(jobs, rules(weight=0), days=1)
    assert used(found, teams, until=DAY)["vision"] > 0.7


@pytest.mark.thorough
def test_a_team_that_was_away_catches_up_and_then_has_its_share() -> None:
    chance = Random(4)
    late = [
        job(f"atlas-{n}", team="atlas", at=DAY, trains=HOUR, max_runtime=timedelta(hours=6))
        for n in range(500)
    ]
    found, teams = replayed([*jobs_of("vision", 900, chance), *late], rules(), days=5)
    first = [one for one in found.attempts if DAY + 3 * HOUR < one.start_s < DAY + 6 * HOUR]
    assert {teams[one.job] for one in first} == {"atlas"}
    then = used(found, teams, since=3.5 * DAY, until=5 * DAY)
    assert then == pytest.approx({"atlas": 0.5, "vision": 0.5}, rel=0.05)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_team_with_the_least_share_starts_within_what_age_is_worth(seed: int) -> None:
    """An hour is worth a point, so twice three times the weight in hours pass before the oldest is first."""
    chance, weight = Random(seed), 2
    fair: dict[str, Any] = {"weight": weight, "half_life": "1d", "shares": {"speech": 0.001, "vision": 1000}}
    wanted = policy(
        2,
        order={"fair_share": fair, "aging": {"per": "1h", "add": 1}},
        preemption={"enabled": False},
        rest={"teams": [{"name": name, "roles": "any"} for name in ("speech", "vision")]},
    )
    poor = [
        job(f"speech-{n}", team="speech", at=n * 5 * HOUR, trains=HOUR, max_runtime=timedelta(hours=2))
        for n in range(12)
    ]
    rich = [
        job(
            f"vision-{n}",
            team="vision",
            at=n * HOUR / 2,
            trains=chance.uniform(0.8, 1.2) * HOUR,
            max_runtime=timedelta(hours=2),
        )
        for n in range(200)
    ]
    found, _ = replayed([*poor, *rich], wanted, days=9)
    starts = {one.job: one.start_s for one in found.attempts}
    waited = {one.name: starts[one.name] - n * 5 * HOUR for n, one in enumerate(poor)}
    assert max(waited.values()) < (6 * weight + 13) * HOUR, f"seed {seed}: {waited}"
