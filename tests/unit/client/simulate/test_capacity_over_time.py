"""Replays follow calendars and reservations: what a policy with them would have come to."""

from collections import defaultdict
from datetime import timedelta
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from trainmaster.core.policy import Policy, PoolPolicy
from trainmaster.core.policy.pool_changes import changes_of
from trainmaster_client.simulate.comparison.devices import Devices
from trainmaster_client.simulate.comparison.figures import capacity_device_s
from trainmaster_client.simulate.engine.capacity_over_time import CapacityOverTime
from trainmaster_client.simulate.engine.event_loop import nothing_yet
from trainmaster_client.simulate.engine.past_jobs import PastJob
from trainmaster_client.simulate.engine.replays import Replay, ReplayedAttempt
from trainmaster_client.simulate.io.replaying import plain_queue, replay

from tests.unit.client.simulate.replayed import BEGIN, G5, HIGH, LOW, attempts, history, instant, job, policy

HOUR = 3600
STOP_S = 180
"""Seconds within which a stop at a change takes effect: a minute until the pass, two to save."""
TEAMS = [{"name": name, "roles": "any"} for name in ("vision", "language")]


def between(begin_h: float, end_h: float, count: int, **fields: Any) -> dict[str, Any]:
    begin, end = instant(begin_h * HOUR), instant(end_h * HOUR)
    return {"from": begin.isoformat(), "to": end.isoformat(), "capacity": {G5: count}} | fields


def reservation(begin_h: float, end_h: float, count: int, **fields: Any) -> dict[str, Any]:
    begin, end = instant(begin_h * HOUR), instant(end_h * HOUR)
    instants = {"from": begin.isoformat(), "to": end.isoformat()}
    return {"name": "demo-day", "team": "language", "instances": {G5: count}} | instants | fields


def played(*jobs: PastJob, policy: Policy) -> dict[tuple[str, int], ReplayedAttempt]:
    return attempts(replay(history(*jobs), policy, label="a"))


def test_at_a_lowering_the_lowest_is_stopped_and_resumes_when_there_is_room() -> None:
    rules = policy(2, calendar=[between(1, 3, 1)], warm_pool={"keep_alive": "0s"})
    found = played(
        job("low", trains=2 * HOUR, saves=600, priority=LOW),
        job("high", trains=2 * HOUR, saves=600, priority=HIGH),
        policy=rules,
    )
    low, again = found["low", 0], found["low", 1]
    assert (low.end, low.preempted_by) == ("preempted", None)
    assert HOUR <= low.end_s <= HOUR + STOP_S
    assert low.lost_s < 600
    assert again.start_s >= found["high", 0].end_s, "there is room for one only"
    assert (again.end, found["high", 0].end) == ("completed", "completed")


def test_a_job_that_does_not_save_waits_for_the_end_of_the_lowering() -> None:
    rules = policy(1, calendar=[between(2, 4, 0)])
    found = played(job("long", trains=HOUR, at=HOUR, max_runtime=timedelta(hours=3)), policy=rules)
    assert 4 * HOUR <= found["long", 0].start_s <= 4 * HOUR + 60
    short = played(job("short", trains=600, at=600, max_runtime=timedelta(minutes=30)), policy=rules)
    assert short["short", 0].start_s < HOUR


def test_nothing_else_happens_until_days_later_the_calendar_has_room() -> None:
    entry = between(24 * 20, 24 * 21, 4)
    wide = job("wide", n=4, trains=600, max_runtime=timedelta(hours=2))
    found = played(wide, policy=policy(1, calendar=[entry]))
    assert 480 * HOUR <= found["wide", 0].start_s <= 480 * HOUR + 60
    far = played(wide, policy=policy(1, calendar=[between(24 * 60, 24 * 61, 4)]))
    assert far == {}, "the plane does not know that far ahead, and the replay ends"


def test_what_is_reserved_is_the_teams_alone() -> None:
    rules = policy(2, teams=TEAMS, reservations=[reservation(1, 3, 1)], warm_pool={"keep_alive": "0s"})
    found = played(
        *(job(f"v{number}", trains=5 * HOUR, saves=600) for number in range(2)),
        job("demo", at=1.5 * HOUR, trains=600, team="language"),
        policy=rules,
    )
    stopped = [row for row in found.values() if row.end == "preempted"]
    assert [HOUR <= row.end_s <= HOUR + STOP_S for row in stopped] == [True]
    assert found["demo", 0].start_s == 1.5 * HOUR
    again = found[stopped[0].job, 1]
    assert 3 * HOUR <= again.start_s <= 3 * HOUR + 60


def test_the_plain_queue_loses_the_same_instances() -> None:
    rules = policy(2, calendar=[between(1, 3, 1)])
    jobs = (job("a", trains=2 * HOUR, saves=600, priority=LOW), job("b", trains=4 * HOUR, saves=600))
    found = attempts(plain_queue(history(*jobs), rules))
    assert found["a", 0].end == "preempted"
    assert HOUR <= found["a", 0].end_s <= HOUR + STOP_S
    assert 3 * HOUR <= found["a", 1].start_s <= 3 * HOUR + 60
    assert attempts(plain_queue(history(job("wide", n=3)), policy(1, calendar=[between(2, 3, 3)])))


def test_the_figures_count_only_what_there_was() -> None:
    found = nothing_yet(history(job("a")), policy(2, calendar=[between(1, 3, 0)]), label="")
    devices = Devices.of_types([])
    assert capacity_device_s(found, devices, horizon_s=4 * HOUR) == 2 * 2 * HOUR
    assert found.capacity["g1"]["on-demand"] == {G5: 2}
    assert found.notes == ["Capacity by the clock is replayed in g1."]
    plain = nothing_yet(history(job("a")), policy(2), label="")
    assert capacity_device_s(plain, devices, horizon_s=4 * HOUR) == 2 * 4 * HOUR
    assert (plain.notes, plain.steps) == ([], {})


def test_changes_far_ahead_are_learned_in_time_and_each_once() -> None:
    entry = {"every": "Mon-Fri 08:00-18:00", "timezone": "Europe/Berlin", "capacity": {G5: 1}}
    at_the_edge = reservation(32 * 24, 32 * 24 + 5, 1, name="edge")
    kept = [reservation(1000, 1100, 1), at_the_edge]
    (pool,) = policy(2, calendar=[entry], teams=TEAMS, reservations=kept).pools
    over_time = CapacityOverTime.of(pool, begins=BEGIN)
    assert over_time is not None
    whole = changes_of(
        pool, since=BEGIN - timedelta(days=1), until=BEGIN + timedelta(days=150), zone_of=ZoneInfo
    )
    now = BEGIN
    while now < BEGIN + timedelta(days=100):
        found = over_time.at(now)
        (in_force,) = [change for change in whole if change.at <= now][-1:]
        assert (found.capacity, found.reserved) == (in_force.capacity, in_force.reserved), now
        until = now.replace(minute=0, second=0) + timedelta(days=32)
        assert [change.at for change in found.ahead] == [
            change.at for change in whole if now < change.at < until
        ], now
        now += timedelta(hours=7, minutes=13)


@pytest.mark.parametrize("seed", range(12))
def test_at_no_instant_is_more_used_than_there_is_nor_what_is_another_teams(seed: int) -> None:
    """But for stops that are under way: each takes at most a minute to begin, and two to save."""
    chance = Random(seed)
    count = 4
    calendar = [
        between(begin, begin + chance.choice([1, 3, 6]), chance.randint(2, count))
        for begin in chance.sample(range(1, 20), 3)
    ]
    reservations = [
        reservation(begin, begin + 4, 1, name=f"r{number}", team=team)
        for number, (begin, team) in enumerate(
            zip(chance.sample(range(1, 20), 2), ["vision", "language"], strict=True)
        )
    ]
    rules = policy(count, calendar=calendar, reservations=reservations, teams=TEAMS)
    jobs = [
        job(
            f"j{number}",
            at=chance.randrange(20 * HOUR),
            n=chance.randint(1, 2),
            trains=chance.choice([600, HOUR, 4 * HOUR]),
            team=chance.choice(["vision", "language"]),
            priority=chance.choice([LOW, HIGH]),
            max_runtime=timedelta(hours=chance.choice([5, 24])),
            saves=chance.choice([None, 300]),
        )
        for number in range(25)
    ]
    found = replay(history(*jobs), rules, label="a")
    assert {row.job for row in found.attempts if row.end == "completed"} == {past.name for past in jobs}
    teams = {past.name: past.team for past in jobs}
    _check(found, teams, rules.pools[0])


def _check(found: Replay, teams: dict[str, str], pool: PoolPolicy) -> None:
    """By the definition: each team counts with what it holds or has reserved, whichever is more."""
    changes = changes_of(pool, since=BEGIN, until=BEGIN + timedelta(days=31), zone_of=ZoneInfo)
    seconds = [(change.at - BEGIN) // timedelta(seconds=1) for change in changes]
    last = max(row.end_s for row in found.attempts)
    looks = sorted({row.start_s for row in found.attempts} | {second + STOP_S for second in seconds})
    for second in (look for look in looks if look <= last):
        if any(change < second < change + STOP_S for change in seconds if change):
            continue
        (change,) = [change for change, at in zip(changes, seconds, strict=True) if at <= second][-1:]
        held: dict[str, int] = defaultdict(int)
        for row in found.attempts:
            if row.start_s <= second < row.end_s:
                held[teams[row.job]] += row.instances
        kept = {team: counts.get(G5, 0) for team, counts in change.reserved.items()}
        counted = sum(max(held.get(team, 0), kept.get(team, 0)) for team in {*held, *kept})
        assert counted <= change.capacity[G5], (second, dict(held), kept, change.capacity)
