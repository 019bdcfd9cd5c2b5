"""What a replay takes from the same attempt of the past: durations of stops, and when news came."""

from datetime import timedelta
from typing import Any

from trainmaster_client.simulate.engine.event_loop import engine_of
from trainmaster_client.simulate.engine.past_jobs import PastAttempt, PastJob
from trainmaster_client.simulate.engine.pool_passes import PoolPasses
from trainmaster_client.simulate.engine.pool_replay import PoolReplay

from tests.unit.client.simulate.replayed import HIGH, LOW, history, instant, job, policy, replayed, times


def tried(
    began: float, trains: float | None, ended: float, end: str, *statuses: tuple[str, float]
) -> PastAttempt:
    """Seconds; those of the statuses count from its start."""
    return PastAttempt(
        started_at=instant(began),
        training_since=None if trains is None else instant(trains),
        ended_at=instant(ended),
        end=end,
        lost=timedelta(),
        warm=False,
        statuses=tuple((status, timedelta(seconds=at)) for status, at in statuses),
    )


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


STOPPED_EARLY = tried(0, None, 62.5, "preemption", ("Starting", 0), ("Pending", 15), ("Stopping", 50))


def urgent(at: float, **fields: Any) -> PastJob:
    return job("urgent", at=at, priority=HIGH, trains=100, cold_start=seconds(60), **fields)


def test_a_stop_before_it_trained_takes_as_long_as_it_did() -> None:
    low = job("low", priority=LOW, trains=500, cold_start=seconds(45), attempts=(STOPPED_EARLY,))
    found = replayed(low, urgent(50), policy=policy(1))
    assert times(found["low", 0]) == (0, 50, 62, "preempted"), "nor had it trained by then"
    assert found["urgent", 0].start_s == 62


def test_instants_are_exact_to_the_millisecond_and_rows_in_whole_seconds() -> None:
    first = job("a", trains=100.4, cold_start=seconds(60.4))
    cold = policy(1, warm_pool={"keep_alive": "0s", "retain": "0s"})
    found = replayed(first, job("b", at=160.9, trains=10, cold_start=seconds(60.2)), policy=cold)
    assert times(found["a", 0]) == (0, 60, 160, "completed"), "at 160.8 its instances are free"
    assert times(found["b", 0]) == (160, 221, 231, "completed"), "160.9, 221.1, 231.1"


def test_who_uploads_ends_as_it_would_when_it_is_asked_to_stop() -> None:
    done = tried(
        0, 60, 560, "completed", ("Starting", 0), ("Training", 60), ("Uploading", 540), ("Completed", 560)
    )
    low = job("low", priority=LOW, trains=500, cold_start=seconds(60), attempts=(done,))
    found = replayed(low, urgent(545), policy=policy(1))
    assert times(found["low", 0]) == (0, 60, 560, "completed")
    assert found["urgent", 0].start_s == 560


def test_a_user_stops_it_when_the_user_did_and_it_holds_its_instances_until_it_has_stopped() -> None:
    stopped = tried(0, 60, 200, "stopped-by-user", ("Training", 60), ("Stopping", 100), ("Stopped", 200))
    one = job("a", trains=40, end="stopped", cold_start=seconds(60), attempts=(stopped,))
    found = replayed(one, job("b", at=10), policy=policy(1))
    assert (*times(found["a", 0]), found["a", 0].stopping_s) == (0, 60, 200, "stopped", 100)
    assert found["b", 0].start_s == 200


def test_reconcile_wakes_the_pool_before_it_has_looked_at_checkpoints_and_after() -> None:
    seen: list[tuple[float, bool]] = []
    low = job("low", priority=LOW, trains=3000, saves=100, cold_start=seconds(60))
    waits = job("waits", at=1, priority=LOW, trains=10)

    class Watched(PoolPasses):
        __slots__ = ()

        def run(self) -> None:
            entry = self.state.running.get("low")
            if entry is not None:
                seen.append((self.sagemaker.event_queue.now, entry.checkpoint.last is not None))
            PoolPasses.run(self)

    engine = engine_with(Watched, low, waits)
    engine.run(until=900)
    first = next(at for at, knows in seen if knows)
    assert first % 60 == 0
    assert [knows for at, knows in seen if at == first] == [False, True]


def engine_with(passes: type[PoolPasses], *jobs: PastJob) -> Any:
    engine = engine_of(history(*jobs), policy(1), ("g1",), PoolReplay.of, cpu_clock=lambda: 0.0)
    pool = engine.pools["g1"]
    pool.passes = passes(
        state=pool.state,
        sagemaker=pool.sagemaker,
        policy=pool.setting.policy,
        cpu_clock=pool.setting.cpu_clock,
        tally=pool.tally,
    )
    return engine
