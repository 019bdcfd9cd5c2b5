"""Rows N4 and N7 to N11: what SageMaker answers about a training job is not what one hopes for."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from trainmaster.api.jobs import show_job
from trainmaster.core.errors import (
    AccountLimitError,
    InstanceLimitError,
    TrainingRefusedError,
    UnavailableError,
)
from trainmaster.core.jobs.instances import Capacity

from tests.bodies import body
from tests.builders import minutes
from tests.faults.planes import plane, run, states
from tests.histories.world import POOL, World
from tests.memory.store import MemoryJobStore

GPU = "ml.g5.xlarge"
FOUR: dict[str, Any] = {"pools": [{"name": POOL, "capacity": {GPU: 4}, "capacity_wait": "30m"}]}


def submit(world: World, *names: str, **changes: Any) -> None:
    resources = {"InstanceType": GPU, "InstanceCount": 1, "VolumeSizeInGB": 1}
    for name in names:
        answer = world.submit(body(TrainingJobName=name, **{"ResourceConfig": resources} | changes))
        assert answer.status == 201, answer


def minutes_pass(world: World, count: int) -> None:
    for _ in range(count):
        world.now += minutes(1)
        run(world, world.reconcile)
        run(world, world.run_pass)


def view(world: World, name: str) -> dict[str, Any]:
    answer: Any = world._call(lambda context: show_job(context, name))
    found: dict[str, Any] = answer.body
    return found


def warnings(world: World) -> list[Mapping[str, Any]]:
    return [detail for kind, detail in world.notifier.told if kind == "Platform Warning"]


@pytest.fixture
def started() -> World:
    """job1 was taken by SageMaker, and looks for instances."""
    world = plane(FOUR)
    submit(world, "job1")
    run(world, world.run_pass)
    assert states(world, "job1") == ["running"]
    return world


# ---- N4: what we add


def too_long(request: Mapping[str, Any]) -> Exception | None:
    long = request["ResourceConfig"].get("KeepAlivePeriodInSeconds", 0) > 3600
    return AccountLimitError("the longest keep-alive period is 3600") if long else None


def no_pending(request: Mapping[str, Any]) -> Exception | None:
    sent = "MaxPendingTimeInSeconds" in request["StoppingCondition"]
    return TrainingRefusedError("ValidationException: MaxPendingTimeInSeconds") if sent else None


def no_pending_by_quota(request: Mapping[str, Any]) -> Exception | None:
    return AccountLimitError("MaxPendingTimeInSeconds") if no_pending(request) else None


@pytest.mark.parametrize("objection", [too_long, no_pending, no_pending_by_quota])
def test_N4_what_we_add_and_aws_refuses_is_left_out(objection: Callable[[Any], Exception | None]) -> None:
    pool = FOUR["pools"][0] | {"warm_pool": {"keep_alive": "2h"}}
    world = plane({"pools": [pool]})
    world.sagemaker.objections.append(objection)
    submit(world, "job1", "job2")
    run(world, world.run_pass)
    assert states(world, "job1", "job2") == ["running", "running"], "in the same pass"
    assert world.sagemaker.tried == ["job1", "job1", "job2", "job2"], "the same name"
    for name in ("job1", "job2"):
        live = world.job(name).live_attempt
        request = world.sagemaker.jobs[name].request
        assert "KeepAlivePeriodInSeconds" not in request["ResourceConfig"]
        assert "MaxPendingTimeInSeconds" not in request["StoppingCondition"]
        assert (live.number, live.keep_alive, live.max_pending) == (0, None, None)
    minutes_pass(world, 3)
    (told,) = warnings(world)
    assert (told["team"], told["subject"]) == ("operators", "addition-refused")
    assert "KeepAlivePeriodInSeconds=7200" in told["what"]


def test_operators_hear_once_of_refused_additions_however_many_lengths_a_team_asks_for() -> None:
    """What was said stays in the row of the pool's counters, so nobody may choose how often."""
    pool = FOUR["pools"][0] | {"warm_pool": {"keep_alive": "2h"}}
    world = plane({"pools": [pool]})
    world.sagemaker.objections.append(no_pending)
    for number in range(4):
        resources = {"InstanceType": GPU, "InstanceCount": 1, "VolumeSizeInGB": 1}
        submit(world, f"job{number}", ResourceConfig=resources | {"KeepAlivePeriodInSeconds": 3600 + number})
    run(world, world.run_pass)
    assert states(world, *(f"job{number}" for number in range(4))) == ["running"] * 4
    minutes_pass(world, 3)
    assert len(warnings(world)) == 1


def test_N4_a_start_that_nobody_can_be_told_of_is_recorded_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else a job would wait whose training job runs."""
    world = plane({"pools": [FOUR["pools"][0] | {"warm_pool": {"keep_alive": "2h"}}]})
    world.sagemaker.objections.append(too_long)

    def refuse(*_: object, **__: object) -> None:
        raise UnavailableError("the table does not answer")

    monkeypatch.setattr(MemoryJobStore, "leave_once", refuse)
    submit(world, "job1")
    run(world, world.run_pass)
    assert states(world, "job1") == ["running"]
    assert list(world.sagemaker.live()) == ["job1"]


def test_N4_a_refusal_of_the_rest_is_the_job_s_own() -> None:
    world = plane(FOUR)
    world.sagemaker.objections.append(lambda _: AccountLimitError("no more"))
    submit(world, "job1")
    run(world, world.run_pass)
    assert world.sagemaker.tried == ["job1", "job1"]
    assert view(world, "job1")["waiting"]["code"] == "account-limit"
    minutes_pass(world, 1)
    assert world.sagemaker.tried == ["job1"] * 3, "only the first refusal may be about what we add"
    assert warnings(world) == []


def test_N4_a_refusal_for_the_quota_of_the_instances_is_not_about_what_we_add() -> None:
    world = plane(FOUR)
    world.sagemaker.objections.append(lambda _: InstanceLimitError("no more"))
    submit(world, "job1")
    run(world, world.run_pass)
    assert world.sagemaker.tried == ["job1"], "a call that can change nothing is not made"
    assert view(world, "job1")["waiting"]["code"] == "account-limit"


def test_N4_what_was_really_sent_is_kept(started: World) -> None:
    assert started.job("job1").live_attempt.max_pending == minutes(30)


# ---- N7 and N8: the end of the pending time

DIALECTS = [
    ("Stopped", "MaxPendingTimeExceeded", None),
    ("Stopped", "Stopped", None),
    ("Stopped", "MaxRuntimeExceeded", None),
    ("Failed", "Failed", "CapacityError: no instances"),
    ("Failed", "Failed", "InternalServerError: something else"),
]


def end_heard(world: World, status: str, secondary: str | None = None, reason: str | None = None) -> None:
    world.sagemaker.end("job1", status, secondary=secondary, reason=reason)
    run(world, lambda: world.hear("job1"))


@pytest.mark.parametrize(("status", "secondary", "reason"), DIALECTS)
def test_N7_a_pending_time_that_ran_out_is_a_lack_of_capacity_whatever_it_is_called(
    started: World, status: str, secondary: str, reason: str | None
) -> None:
    started.now += minutes(30)
    end_heard(started, status, secondary, reason)
    job = started.job("job1")
    assert (job.state.value, job.attempt, job.comebacks.retries) == ("pending", 1, 0)
    (ended,) = view(started, "job1")["attempts"]
    assert ended["reason"]["code"] == "capacity"
    minutes_pass(started, 1)
    assert states(started, "job1") == ["running"]


def started_by_a_clock_that_is(fast_by: timedelta) -> World:
    """As ``started``; the clock of our functions is ahead of SageMaker's, or behind it."""
    world = plane(FOUR)
    world.sagemaker.clock = lambda: world.now - fast_by
    submit(world, "job1")
    run(world, world.run_pass)
    return world


@pytest.mark.parametrize("fast_by", [minutes(2), minutes(-2)], ids=["fast", "slow"])
@pytest.mark.parametrize(("status", "secondary", "reason"), DIALECTS)
def test_O16_a_pending_time_that_ran_out_is_told_by_sagemakers_own_two_stamps(
    status: str, secondary: str, reason: str | None, fast_by: timedelta
) -> None:
    world = started_by_a_clock_that_is(fast_by)
    world.now += minutes(30)
    end_heard(world, status, secondary, reason)
    job = world.job("job1")
    assert (job.state.value, job.attempt, job.comebacks.retries) == ("pending", 1, 0)
    (ended,) = view(world, "job1")["attempts"]
    assert ended["reason"]["code"] == "capacity"


@pytest.mark.parametrize("fast_by", [minutes(2), minutes(-2)], ids=["fast", "slow"])
@pytest.mark.parametrize("waited", [minutes(28), timedelta(minutes=29, seconds=30)])
def test_O16_a_stop_before_the_pending_time_is_over_is_somebody_s_stop_by_any_clock_of_ours(
    waited: timedelta, fast_by: timedelta
) -> None:
    world = started_by_a_clock_that_is(fast_by)
    world.now += waited
    end_heard(world, "Stopped")
    job = world.job("job1")
    assert (job.state.value, job.reason and job.reason.code) == ("stopped", "stopped-outside")


def test_O16_what_sagemaker_rounds_is_no_stop_before_the_time(started: World) -> None:
    started.now += minutes(30) - timedelta(seconds=2)
    end_heard(started, "Stopped")
    assert states(started, "job1") == ["pending"]


def test_N7_without_our_own_note_the_request_says_what_was_sent(started: World) -> None:
    """A start that was adopted after a crash, or that an earlier release made."""
    started.now += minutes(30)
    job = started.tables.jobs["job1"]
    live = replace(job.live_attempt, max_pending=None)
    started.tables.jobs["job1"] = replace(job, live=live)
    end_heard(started, "Stopped")
    assert states(started, "job1") == ["pending"]


def test_N8_stopped_before_the_pending_time_is_over_is_somebody_s_stop(started: World) -> None:
    started.now += minutes(10)
    end_heard(started, "Stopped")
    job = started.job("job1")
    assert (job.state.value, job.reason and job.reason.code) == ("stopped", "stopped-outside")


def test_N8_stopped_after_delete_is_the_user_s_stop(started: World) -> None:
    started.now += minutes(29)
    started.cancel("job1")
    run(started, started.run_pass)
    started.now += minutes(2)
    end_heard(started, "Stopped")
    job = started.job("job1")
    assert (job.state.value, job.reason and job.reason.code) == ("stopped", "stopped-by-user")


def test_N8_stopped_while_preempting_is_preempted(started: World) -> None:
    submit(started, "a", "b", "c")
    run(started, started.run_pass)
    for name in ("a", "b", "c"):
        started.sagemaker.train(name)
        run(started, partial(started.hear, name))
    started.now += minutes(40)  # a stop of what has hardly trained would not be worth it
    submit(started, "urgent", Tags=[{"Key": "priority", "Value": "9"}])
    run(started, started.run_pass)
    assert states(started, "job1") == ["preempting"]
    started.now += minutes(31)
    end_heard(started, "Stopped")
    assert states(started, "job1") == ["preempted"]


def test_N8_one_that_trained_was_stopped_outside(started: World) -> None:
    started.now += minutes(1)
    started.sagemaker.train("job1")
    run(started, lambda: started.hear("job1"))
    started.now += minutes(40)
    end_heard(started, "Stopped")
    job = started.job("job1")
    assert (job.state.value, job.reason and job.reason.code) == ("stopped", "stopped-outside")


# ---- N9: not found


@pytest.mark.parametrize("looks", [1, 4])
def test_N9_a_job_that_is_not_found_for_a_while_stays_live(started: World, looks: int) -> None:
    started.sagemaker.unseen.add("job1")
    minutes_pass(started, looks)
    assert states(started, "job1") == ["running"]
    assert started.tables.pools[POOL].used[Capacity(GPU)] == 1
    started.sagemaker.unseen.clear()
    minutes_pass(started, 1)
    assert started.job("job1").live_attempt.missing_since is None
    started.sagemaker.unseen.add("job1")
    minutes_pass(started, 4)
    assert states(started, "job1") == ["running"], "it counts again"


def test_N9_as_long_as_it_is_listed_it_is_live_and_holds_its_instances(started: World) -> None:
    started.sagemaker.unseen.add("job1")
    minutes_pass(started, 60)
    submit(started, "a", "b", "c", "d")
    run(started, started.run_pass)
    assert states(started, "job1", "a", "b", "c", "d") == ["running"] * 4 + ["pending"]


def test_N9_missing_for_ten_minutes_and_not_listed_it_was_deleted(started: World) -> None:
    del started.sagemaker.jobs["job1"]
    minutes_pass(started, 5)
    assert states(started, "job1") == ["running"]
    minutes_pass(started, 5)
    job = started.job("job1")
    assert (job.state.value, job.reason and job.reason.code) == ("failed", "deleted-outside")
    assert started.tables.pools[POOL].used[Capacity(GPU)] == 0


def test_N9_an_event_alone_never_concludes_that_a_job_is_gone(started: World) -> None:
    """Its function has no right to list."""
    started.sagemaker.unseen.add("job1")
    started.sagemaker.unlisted.add("job1")
    for _ in range(3):
        run(started, lambda: started.hear("job1"))
        started.now += minutes(6)
    assert states(started, "job1") == ["running"]


# ---- N10: nobody knows it yet


@pytest.mark.parametrize("answered", [True, False])
@pytest.mark.parametrize("hides", ["unseen", "untagged"])
def test_N10_a_create_that_nobody_sees_yet_is_asked_for_again_and_adopted(
    hides: str, *, answered: bool
) -> None:
    world = plane(FOUR)
    getattr(world.sagemaker, hides).add("job1")
    world.sagemaker.lose_answers = 0 if answered else 1
    submit(world, "job1")
    run(world, world.run_pass)
    assert states(world, "job1") == ["running" if answered else "starting"]
    world.now += minutes(10 / 60)
    run(world, lambda: world.hear("job1"))
    assert states(world, "job1") == ["running" if answered else "starting"]
    getattr(world.sagemaker, hides).clear()
    minutes_pass(world, 6)
    assert states(world, "job1") == ["running"]
    assert world.sagemaker.tried == ["job1"], "one Create"


def test_N10_a_name_that_is_in_use_and_not_seen_yet_is_not_taken_for_somebody_else_s() -> None:
    """The SDK sent the request again, because the answer to the first was lost."""
    world = plane(FOUR)
    world.sagemaker.unseen.add("job1")
    world.sagemaker.objections.append(partial(_made_at_first, world))
    submit(world, "job1")
    run(world, world.run_pass)
    assert states(world, "job1") == ["starting"]
    world.sagemaker.unseen.clear()
    run(world, lambda: world.hear("job1"))
    assert states(world, "job1") == ["running"]


def _made_at_first(world: World, request: Mapping[str, Any]) -> None:
    if request["TrainingJobName"] not in world.sagemaker.jobs:
        world.sagemaker.run_outside(request)


def test_N10_without_tags_for_longer_it_is_somebody_else_s() -> None:
    world = plane(FOUR)
    world.sagemaker.run_outside(body(TrainingJobName="job1", Tags=[]))
    submit(world, "job1")
    world.run_pass()
    assert states(world, "job1") == ["starting"]
    world.now += minutes(0.5)
    world.reconcile()
    assert states(world, "job1") == ["starting"]
    world.now += minutes(0.6)
    world.reconcile()
    job = world.job("job1")
    assert (job.state.value, job.reason and job.reason.code) == ("failed", "name-taken")


def test_N10_a_create_whose_answer_was_lost_is_adopted_long_before_its_lease_is_over() -> None:
    world = plane(FOUR)
    world.sagemaker.unseen.add("job1")
    world.sagemaker.lose_answers = 1
    submit(world, "job1")
    run(world, world.run_pass)
    world.sagemaker.unseen.clear()
    world.now += minutes(1)
    world.reconcile()
    assert states(world, "job1") == ["running"]
    assert world.sagemaker.tried == ["job1"]


# ---- N11: an unknown status


def test_N11_an_unknown_status_that_stays_counts_as_running_and_operators_hear_of_it(started: World) -> None:
    one = started.sagemaker.jobs["job1"]
    one.status = one.secondary = "Archived"
    minutes_pass(started, 2)
    (told,) = warnings(started)
    assert (told["subject"], told["job"]) == ("unknown-status", "job1")
    assert "Archived" in told["what"]
    submit(started, "a", "b", "c", "d")
    minutes_pass(started, 60)
    assert view(started, "job1")["state"] == "running"
    assert states(started, "a", "b", "c", "d") == ["running"] * 3 + ["pending"]
    assert len(warnings(started)) == 1
