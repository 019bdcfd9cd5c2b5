"""The planner in simulated time: its plan is carried out as the product would, and it never knows more."""

from datetime import datetime, timedelta

import pytest
from trainmaster.core.planning import planner
from trainmaster.core.planning.actions import LimitReservation, Plan
from trainmaster.core.planning.snapshot import PreemptionReservation, Snapshot
from trainmaster.core.policy import PoolPolicy
from trainmaster_client.simulate.sources.drawn_facts import Klass

from benchmarks.replay.jobs import TraceJob
from benchmarks.replay.pool_table import instant
from benchmarks.replay.product import Product
from benchmarks.replay.site import Row, Site
from tests.unit.benchmarks.traces import job, rules

Looks = list[tuple[int, Snapshot]]


def replayed(*jobs: TraceJob, policy: PoolPolicy) -> dict[tuple[str, int], Row]:
    site = Site(jobs)
    return {(row.job_id, row.attempt): row for row in site.run(Product(site, policy))}


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    """What the planner was shown, by second."""
    seen: Looks = []
    decide = planner.plan

    def noted(snapshot: Snapshot, pool: PoolPolicy, *, now: datetime) -> Plan:
        seen.append(((now - instant(0)) // timedelta(seconds=1), snapshot))
        return decide(snapshot, pool, now=now)

    monkeypatch.setattr(planner, "plan", noted)
    return seen


def crowd(duration_s: int) -> list[TraceJob]:
    classes = [Klass.LOW, Klass.NORMAL, Klass.HIGH]
    return [
        job(f"j{n}", submit_s=40 * n, duration_s=duration_s, klass=classes[n % 3], checkpoint_every_s=600)
        for n in range(12)
    ]


def test_until_the_first_job_ends_the_planner_sees_the_same_however_long_jobs_run(looks: Looks) -> None:
    policy = rules(3, warm_pool={"keep_alive": "10m"})
    replayed(*crowd(5000), policy=policy)
    short = [look for look in looks if look[0] < 5000]
    looks.clear()
    replayed(*crowd(9000), policy=policy)
    long = [look for look in looks if look[0] < 5000]
    assert len(short) > 20
    assert short == long


def test_a_plan_of_nothing_starts_nothing_and_comes_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "plan", lambda *_, **__: Plan(actions=(), reasons={}))
    assert replayed(*crowd(5000), policy=rules()) == {}


def test_the_victim_goes_on_from_its_checkpoint_in_the_room_of_the_preemptor() -> None:
    rows = replayed(
        job("low", klass=Klass.LOW, duration_s=10_000, checkpoint_every_s=600),
        job("high", submit_s=2000, klass=Klass.HIGH),
        policy=rules(1),
    )
    assert rows["low", 0] == Row("low", 0, "g1", 1, 0, 240, 2090, "preempted", 560, False)
    assert rows["high", 0] == Row("high", 0, "g1", 1, 2090, 2330, 3330, "completed", 0, False)
    assert rows["low", 1] == Row("low", 1, "g1", 1, 3330, 3630, 12_430, "completed", 0, False)


def test_a_start_in_a_warm_pool_takes_30_seconds() -> None:
    rows = replayed(
        job("first"), job("second", submit_s=10), policy=rules(1, warm_pool={"keep_alive": "10m"})
    )
    assert rows["second", 0] == Row("second", 0, "g1", 1, 1240, 1270, 2270, "completed", 0, True)


def test_a_warm_pool_of_another_team_makes_room() -> None:
    warm = rules(1, warm_pool={"keep_alive": "10m", "retain": "10m"})
    rows = replayed(job("first"), job("other", submit_s=1300, team="speech"), policy=warm)
    assert rows["other", 0] == Row("other", 0, "g1", 1, 1300, 1540, 2540, "completed", 0, False)


def test_an_attempt_stopped_before_it_trained_leaves_no_warm_pool() -> None:
    rows = replayed(
        job("low", klass=Klass.LOW),
        job("high", submit_s=100, klass=Klass.HIGH),
        policy=rules(1, warm_pool={"keep_alive": "10m"}),
    )
    assert (rows["high", 0].start_s, rows["high", 0].warm) == (190, False)


def test_checkpoints_are_seen_at_most_every_five_minutes_and_only_while_jobs_wait(looks: Looks) -> None:
    replayed(
        job("saves", duration_s=6000, checkpoint_every_s=600),
        job("waits", submit_s=3000, duration_s=10),
        policy=rules(1),
    )
    seen = {
        second: (snapshot.running[0].checkpoint.last, snapshot.running[0].training_since)
        for second, snapshot in looks
        if snapshot.running and snapshot.running[0].name == "saves"
    }
    assert seen[3000] == (None, instant(240))
    assert seen[3060] == (instant(240 + 4 * 600), instant(240))
    assert seen[3300][0] == instant(2640)  # the checkpoint of 3240 is there; nobody has looked since 3060
    assert seen[3360][0] == instant(3240)


def test_nobody_looks_for_checkpoints_while_no_job_waits(looks: Looks) -> None:
    replayed(
        job("saves", duration_s=6000, checkpoint_every_s=600),
        job("leaves-a-warm-pool", duration_s=1000),
        policy=rules(2, warm_pool={"keep_alive": "1h", "retain": "1h", "max_idle": "1h"}),
    )
    assert max(second for second, _ in looks) > 3000
    assert {one.checkpoint.last for _, snapshot in looks for one in snapshot.running} == {None}


def test_a_pass_sees_the_first_eight_of_each_lane_in_their_turn(looks: Looks) -> None:
    crowded = [job(f"j{n}", submit_s=n, instances=1 + n % 2) for n in range(1, 30)]
    replayed(job("first", instances=2, duration_s=5000), *crowded, policy=rules(2))
    (heads,) = [snapshot.waiting for second, snapshot in looks if second == 29]
    by_width = {n: [one.name for one in heads if sum(one.vector.values()) == n] for n in (1, 2)}
    assert by_width == {
        1: ["j2", "j4", "j6", "j8", "j10", "j12", "j14", "j16"],
        2: ["j1", "j3", "j5", "j7", "j9", "j11", "j13", "j15"],
    }


def test_a_planner_that_goes_round_in_circles_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def circles(snapshot: Snapshot, *_: object, **__: object) -> Plan:
        hold = PreemptionReservation(preemptor="nobody", vector={}, victims=())
        return Plan(actions=(LimitReservation(hold=hold, until=instant(0)),), reasons={})

    monkeypatch.setattr(planner, "plan", circles)
    with pytest.raises(AssertionError, match="comes to no end at second 7"):
        replayed(job("a", submit_s=7), policy=rules(1))


def test_shortest_first_lets_the_shorter_job_of_a_class_go_first() -> None:
    jobs = [
        job("short", duration_s=100, team="short"),
        job("long", submit_s=1, duration_s=9000, team="long"),
        job("next-long", submit_s=500, duration_s=9000, team="long"),
        job("blocks", submit_s=9400, duration_s=2000, team="long"),
        job("last-long", submit_s=20_000, duration_s=9000, team="long"),
        job("last-short", submit_s=20_100, duration_s=100, team="short"),
    ]
    in_order = replayed(*jobs, policy=rules(1))
    shortest = replayed(*jobs, policy=rules(1, order={"aging": "off", "shortest_first": True}))
    assert in_order["last-long", 0].start_s < in_order["last-short", 0].start_s
    assert shortest["last-short", 0].start_s < shortest["last-long", 0].start_s


def test_the_end_of_an_attempt_is_certain_once_it_trains(looks: Looks) -> None:
    replayed(job("a", duration_s=500), job("b", submit_s=300), policy=rules(1))
    ends = {second: snapshot.running[0].expected.ends_by for second, snapshot in looks if snapshot.running}
    assert ends[0] is None
    assert ends[300] == instant(240 + 86_400 + 600)


def test_the_prediction_is_the_mean_of_the_last_two_run_times_of_team_and_width(looks: Looks) -> None:
    replayed(
        job("a", duration_s=1000),
        job("b", duration_s=3000),
        job("wide", duration_s=9000, instances=2),
        job("c", submit_s=20_000),
        policy=rules(4),
    )
    predicted = {one.name: one.predicted for _, snapshot in looks for one in snapshot.waiting}
    assert predicted == {"a": None, "b": None, "wide": None, "c": timedelta(seconds=2000)}


def test_nobody_starts_beyond_the_pool_and_every_pass_is_counted() -> None:
    site = Site(crowd(700))
    decider = Product(site, rules(2, warm_pool={"keep_alive": "10m"}))
    rows = site.run(decider)
    assert {row.job_id for row in rows if row.end == "completed"} == {f"j{n}" for n in range(12)}
    assert decider.most_held == 2
    assert decider.refused_claims == 0
    assert decider.passes > len(rows)
    assert decider.cpu_s > 0
