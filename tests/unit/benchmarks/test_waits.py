"""Start estimates: who is asked about, when, and how the answers are scored."""

from datetime import datetime, timedelta

from trainmaster_client.simulate.engine.pool_state import PoolState
from trainmaster_client.simulate.engine.team_budgets import TeamBudgets
from trainmaster_client.simulate.histories.trace_draws import Klass

from benchmarks.replay.jobs import TraceJob
from benchmarks.replay.policy import policy_for
from benchmarks.replay.rows import Row, instant
from benchmarks.replay.runs import Setting, ask, replay_seed
from benchmarks.replay.waits import Answer, Questions, Wait, pinball, sampled, scores
from tests.unit.benchmarks.traces import job


def waited(n: int, wait_s: int, *, klass: Klass = Klass.NORMAL) -> tuple[TraceJob, Row]:
    """Job number n comes at second 1000 n."""
    name, submit_s = f"j{n:03d}-{klass}", 1000 * n
    start_s = submit_s + wait_s
    row = Row(name, 0, "g1", 1, start_s, start_s + 240, start_s + 300, "completed", 0, False)
    return job(name, submit_s=submit_s, klass=klass), row


def answer(waited_s: int, p50_s: float, p90_s: float) -> Answer:
    return Answer(
        seed=1,
        job_id="a",
        waited_s=waited_s,
        p50_s=p50_s,
        p90_s=p90_s,
        past_p50_s=100.0,
        past_p90_s=200.0,
    )


def test_a_guess_below_the_truth_costs_the_quantile_and_one_above_the_rest() -> None:
    assert pinball([100], [60], 0.9) == 36.0
    assert round(pinball([60], [100], 0.9), 6) == 4.0
    assert pinball([100, 60], [60, 100], 0.5) == 20.0


def test_scores_are_shares_and_mean_losses() -> None:
    found = scores([answer(150, 100.0, 150.0), answer(300, 100.0, 250.0)])
    assert found == {
        "n": 2,
        "p90_coverage": 0.5,
        "p50_coverage": 0.0,
        "pinball_p50": 62.5,
        "pinball_p90": 22.5,
        "baseline_p50": 62.5,
        "baseline_p90": 47.5,
        "baseline_p90_coverage": 0.5,
    }


def test_only_waits_over_a_minute_with_twenty_such_behind_them_are_drawn() -> None:
    cases = [waited(n, 60 + n) for n in range(30)] + [waited(40, 60)]
    found = sampled([one for one, _ in cases], [row for _, row in cases], count=100, seed=1)
    # Number 0 waited for just a minute; 21 is the first with the waits of 1 to 20 behind it.
    assert sorted(wait.job_id for wait in found) == [f"j{n:03d}-1" for n in range(21, 30)]
    assert found == sampled([one for one, _ in cases], [row for _, row in cases], count=100, seed=1)


def test_the_baseline_is_the_quantiles_of_the_last_200_waits_of_the_class_and_pool() -> None:
    cases = [waited(n, 61 + n) for n in range(250)]
    others = [waited(n, 9000, klass=Klass.LOW) for n in range(250)]
    jobs, rows = [one for one, _ in cases + others], [row for _, row in cases + others]
    waits = {wait.job_id: wait for wait in sampled(jobs, rows, count=1000, seed=1)}
    # Before number 249 lie the waits of 49 to 248: 110 s to 309 s.
    assert waits["j249-1"] == Wait(
        job_id="j249-1",
        pool="g1",
        klass=Klass.NORMAL,
        asked_s=249_000,
        start_s=249_310,
        past_p50_s=210,
        past_p90_s=290,
    )


def an_hour(table: PoolState, name: str, now: datetime) -> tuple[datetime, datetime]:
    """Also sees to it that the question comes in time."""
    (mine,) = [job for job in table.lanes.first_in_turn(1000) if job.name == name]
    assert mine.submitted_at == now
    return now + timedelta(hours=1), now + timedelta(hours=2)


def test_the_question_is_asked_when_the_job_is_submitted() -> None:
    trace = [
        {
            "job_id": f"j{n:03d}",
            "submit_s": str(60 * n),
            "gpus": "1",
            "duration_s": str(600 + 1700 * (n % 3)),
            "vc": "a",
        }
        for n in range(300)
    ]
    setting = Setting(trace=trace, load=2.0, wide=False, shortest_first=False, days=None)
    runs = replay_seed(setting, 1)
    found = ask(setting, runs, count=40, estimator=an_hour)
    starts = {row.job_id: row.start_s for row in runs[1].rows if row.attempt == 0}
    assert len(found) == 40
    assert {(one.p50_s, one.p90_s) for one in found} == {(3600.0, 7200.0)}
    for one in found:
        assert one.waited_s == starts[one.job_id] - 60 * int(one.job_id[1:])


def no_idea(*_: object) -> None:
    return None


def test_a_question_without_an_answer_is_not_scored() -> None:
    wait = Wait(
        job_id="a", pool="g1", klass=Klass.LOW, asked_s=0, start_s=90, past_p50_s=70.0, past_p90_s=80.0
    )
    questions = Questions([wait], no_idea, seed=1)
    policy = policy_for({"g1": 1}, shortest_first=False)
    pool = PoolState.of(policy.pools[0], policy, TeamBudgets.of(policy))
    questions.submitted("a", pool, second=0)
    assert questions.answers == []


def test_instants_and_seconds_of_the_trace_are_the_same_thing() -> None:
    assert instant(90) - instant(0) == timedelta(seconds=90)
