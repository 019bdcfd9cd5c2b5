"""The planner in simulated time: its plan is carried out as the product would, and it never knows more."""

from datetime import datetime, timedelta

import pytest
from trainmaster.core.planning import planner
from trainmaster.core.planning.actions import LimitReservation, Plan
from trainmaster.core.planning.snapshot import PreemptionReservation, Snapshot
from trainmaster.core.policy import PoolPolicy
from trainmaster_client.simulate.engine import idle_pool, pool_passes
from trainmaster_client.simulate.engine.idle_plans import may_act
from trainmaster_client.simulate.engine.past_jobs import PastJob
from trainmaster_client.simulate.io.replaying import replay

from tests.unit.client.simulate.replayed import (
    BEGIN,
    HIGH,
    LOW,
    NORMAL,
    attempts,
    history,
    instant,
    job,
    policy,
    replayed,
    times,
)

Looks = list[tuple[int, Snapshot]]


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    """What was shown to the planner, or to what tells that it has nothing to do, by second."""
    seen: Looks = []

    def noted(snapshot: Snapshot, pool: PoolPolicy, *, now: datetime) -> bool:
        seen.append(((now - BEGIN) // timedelta(seconds=1), snapshot))
        return may_act(snapshot, pool, now=now)

    monkeypatch.setattr(pool_passes, "may_act", noted)
    # Each minute is looked at, also where nothing can have changed since the last look.
    monkeypatch.setattr(idle_pool, "idle_until", lambda *_, now: now)
    return seen


def crowd(trains: int) -> list[PastJob]:
    priorities = [LOW, NORMAL, HIGH]
    return [
        job(f"j{n:02d}", at=40 * n, trains=trains, priority=priorities[n % 3], saves=600) for n in range(12)
    ]


def test_until_the_first_job_ends_the_planner_sees_the_same_however_long_jobs_run(looks: Looks) -> None:
    rules = policy(3, warm_pool={"keep_alive": "10m"})
    replayed(*crowd(5000), policy=rules)
    short = [look for look in looks if look[0] < 5000]
    looks.clear()
    replayed(*crowd(9000), policy=rules)
    long = [look for look in looks if look[0] < 5000]
    assert len(short) > 20
    assert short == long


def test_a_plan_of_nothing_starts_nothing_and_comes_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "plan", lambda *_, **__: Plan(actions=(), reasons={}))
    assert replayed(*crowd(5000), policy=policy()) == {}


def test_the_victim_resumes_from_its_checkpoint_on_the_instances_of_the_preemptor() -> None:
    found = replayed(
        job("low", priority=LOW, trains=10_000, saves=600),
        job("high", at=2000, priority=HIGH),
        policy=policy(1, warm_pool={"keep_alive": "0s"}),
    )
    assert times(found["low", 0]) == (0, 240, 2090, "preempted")
    assert (found["low", 0].lost_s, found["low", 0].preempted_by) == (560, "high")
    assert times(found["high", 0]) == (2090, 2330, 3330, "completed")
    assert times(found["low", 1]) == (3330, 3630, 12_430, "completed")


def test_a_start_in_a_warm_pool_takes_30_seconds() -> None:
    found = replayed(job("first"), job("second", at=10), policy=policy(1, warm_pool={"keep_alive": "10m"}))
    assert times(found["second", 0]) == (1240, 1270, 2270, "completed")
    assert found["second", 0].warm


def test_a_warm_pool_of_another_team_gives_way() -> None:
    warm = policy(1, warm_pool={"keep_alive": "10m", "retain": "10m"})
    found = replay(history(job("first"), job("other", at=1300, team="speech")), warm, label="a")
    assert times(attempts(found)["other", 0]) == (1300, 1540, 2540, "completed")
    assert [(one.since_s, one.until_s) for one in found.warm] == [(1240, 1300), (2540, 3140)]


def test_a_warm_pool_counts_beside_its_attempt_until_that_trains() -> None:
    found = replayed(
        job("first"),
        job("second", at=1250),
        job("other", at=1251, team="speech"),
        policy=policy(2, warm_pool={"keep_alive": "10m", "retain": "10m"}),
    )
    assert times(found["second", 0]) == (1250, 1280, 2280, "completed")
    assert times(found["other", 0])[0] == 1280, "not at once, though an instance is free"


def test_jobs_that_follow_each_other_keep_their_instances_warm() -> None:
    pairs = [(job(f"a{day}", at=5000 * day), job(f"b{day}", at=5000 * day + 1250)) for day in range(5)]
    found = replay(history(*(one for pair in pairs for one in pair)), policy(1), label="a")
    warm = [name for (name, _), row in attempts(found).items() if row.warm]
    assert warm == ["b1", "b2", "b3", "b4"], "of the first pair nothing is known yet"
    assert sum(idle.until_s - idle.since_s for idle in found.warm) < 4 * (10 + 60 + 10)


def test_jobs_that_come_seldom_keep_nothing_warm() -> None:
    jobs = [job(f"job-{number}", at=2000 * number) for number in range(8)]
    found = replay(history(*jobs), policy(1), label="a")
    assert not any(row.warm for row in attempts(found).values())
    assert all(idle.since_s == idle.until_s for idle in found.warm)


def test_an_attempt_stopped_before_it_trained_leaves_no_warm_pool() -> None:
    found = replayed(
        job("low", priority=LOW),
        job("high", at=100, priority=HIGH),
        policy=policy(1, warm_pool={"keep_alive": "10m"}),
    )
    assert times(found["low", 0]) == (0, 100, 190, "preempted")
    assert (found["high", 0].start_s, found["high", 0].warm) == (190, False)


def test_checkpoints_are_looked_at_every_five_minutes_while_jobs_wait(looks: Looks) -> None:
    replayed(
        job("saves", trains=6000, saves=600),
        job("waits", at=3000, trains=10),
        policy=policy(1),
    )
    seen = {
        second: snapshot.running[0].checkpoint.last
        for second, snapshot in looks
        if snapshot.running and snapshot.running[0].name == "saves"
    }
    changes = [second for second in seen if second >= 3000 and seen[second] != seen.get(second - 60)][1:]
    assert seen[3000] is None
    assert seen[6180] == instant(240 + 9 * 600)
    assert {second % 300 for second in changes} == {changes[0] % 300}


def test_nobody_looks_for_checkpoints_that_are_not_old_while_no_job_waits(looks: Looks) -> None:
    replayed(
        job("saves", trains=6000, saves=600),
        job("leaves-a-warm-pool", trains=1000),
        policy=policy(2, warm_pool={"keep_alive": "1h", "retain": "1h", "max_idle": "1h"}),
    )
    assert max(second for second, _ in looks) > 3000
    assert {one.checkpoint.last for _, snapshot in looks for one in snapshot.running} == {None}


def test_a_pass_sees_the_first_eight_of_each_lane_in_their_turn(looks: Looks) -> None:
    crowded = [job(f"j{n:02d}", at=n, n=1 + n % 2) for n in range(1, 30)]
    replayed(job("first", n=2, trains=5000), *crowded, policy=policy(2))
    (heads,) = [snapshot.waiting for second, snapshot in looks if second == 29]
    by_width = {n: [one.name for one in heads if sum(one.vector.values()) == n] for n in (1, 2)}
    assert by_width == {
        1: ["j02", "j04", "j06", "j08", "j10", "j12", "j14", "j16"],
        2: ["j01", "j03", "j05", "j07", "j09", "j11", "j13", "j15"],
    }


def test_a_planner_that_goes_round_in_circles_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def circles(snapshot: Snapshot, *_: object, **__: object) -> Plan:
        hold = PreemptionReservation(preemptor="nobody", vector={}, victims=())
        return Plan(actions=(LimitReservation(hold=hold, until=instant(0)),), reasons={})

    monkeypatch.setattr(planner, "plan", circles)
    with pytest.raises(AssertionError, match="comes to no end at 2026-10-01 00:00:07"):
        replayed(job("a", at=7), policy=policy(1))


def test_shortest_first_lets_the_shorter_job_of_a_class_go_first() -> None:
    jobs = [
        job("short", trains=100, team="short"),
        job("long", at=1, trains=9000, team="long"),
        job("next-long", at=500, trains=9000, team="long"),
        job("blocks", at=9400, trains=2000, team="long"),
        job("last-long", at=20_000, trains=9000, team="long"),
        job("last-short", at=20_100, trains=100, team="short"),
    ]
    in_order = replayed(*jobs, policy=policy(1))
    shortest = replayed(*jobs, policy=policy(1, order={"aging": "off", "shortest_first": True}))
    assert in_order["last-long", 0].start_s < in_order["last-short", 0].start_s
    assert shortest["last-short", 0].start_s < shortest["last-long", 0].start_s


def test_the_end_of_an_attempt_is_certain_once_it_trains(looks: Looks) -> None:
    replayed(job("a", trains=500), job("b", at=100), policy=policy(1))
    ends = {second: snapshot.running[0].expected.ends_by for second, snapshot in looks if snapshot.running}
    assert ends[100] is None
    assert ends[300] == instant(240 + 86_400 + 600)


def test_the_prediction_is_the_mean_of_what_ended_of_team_and_width_within_a_bucket(looks: Looks) -> None:
    replayed(
        job("a", trains=1000),
        job("b", trains=3000),
        job("wide", trains=9000, n=2),
        job("c", at=20_000),
        policy=policy(4),
    )
    predicted = {one.name: one.predicted for _, snapshot in looks for one in snapshot.waiting}
    assert [predicted[name] for name in ("a", "b", "wide")] == [None, None, None]
    assert predicted["c"] is not None
    assert timedelta(seconds=1700) < predicted["c"] < timedelta(seconds=2400)
