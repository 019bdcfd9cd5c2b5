"""When a job would have started at each hour: exact copies of that instant."""

from dataclasses import replace
from datetime import timedelta

from trainmaster.core.jobs.widths import Widths
from trainmaster_client.simulate.engine.past_jobs import PastWidths, usual_speeds
from trainmaster_client.simulate.io.replaying import replay
from trainmaster_client.simulate.io.start_questions import NAME, ask

from tests.unit.client.simulate.replayed import HIGH, history, instant, job, policy

BUSY = history(*(job(f"j{n:02d}", at=1500 * n, trains=2000, priority=50 * (n % 3)) for n in range(12)))


def test_each_answer_is_what_a_replay_with_that_job_gives() -> None:
    asked = job("mine", trains=700)
    found = ask(BUSY, policy(1), asked)
    assert [one.submitted_at for one in found.answers] == [instant(3600 * n) for n in range(5)]
    for one in found.answers:
        second = (one.submitted_at - BUSY.begins).total_seconds()
        # the copy's clock has passed that second's events already, so the job comes behind them
        with_it = history(*BUSY.jobs, job(NAME, at=second, trains=700))
        rows = replay(with_it, policy(1), label="a").attempts
        (start_s,) = [row.start_s for row in rows if row.job == NAME and row.attempt == 0]
        assert one.waits == timedelta(seconds=start_s - second)


def test_a_more_urgent_job_waits_less() -> None:
    normal, high = (ask(BUSY, policy(1), job("mine", priority=priority)) for priority in (0, HIGH))
    waits = [(calm.waits, urgent.waits) for calm, urgent in zip(normal.answers, high.answers, strict=True)]
    assert all(calm is not None and urgent is not None and urgent <= calm for calm, urgent in waits)
    assert any(urgent < calm for calm, urgent in waits if calm is not None and urgent is not None)


def test_a_job_that_is_never_admitted_is_answered_with_the_reason() -> None:
    found = ask(BUSY, policy(1), job("mine", n=2))
    assert found.refused == "asks for 2, but pool g1 has 1 on-demand ml.g5.xlarge in all"
    assert found.answers == ()


def test_one_that_does_not_start_has_no_wait() -> None:
    endless = history(job("first", trains=20 * 86_400, max_runtime=timedelta(days=28)))
    found = ask(endless, policy(1), job("mine"))
    assert [one.waits for one in found.answers] == [None]


def test_an_elastic_job_waits_for_no_more_than_its_least_width() -> None:
    busy = history(job("first", trains=7000, n=2))
    widths = Widths(counts=(2, 4))
    rigid = job("mine", n=4)
    elastic = replace(rigid, elastic=PastWidths(widths=widths, speeds=usual_speeds(widths)))
    (wide,), (narrow,) = (ask(busy, policy(4), asked).answers for asked in (rigid, elastic))
    assert (wide.waits, narrow.waits) == (timedelta(seconds=7240), timedelta())
