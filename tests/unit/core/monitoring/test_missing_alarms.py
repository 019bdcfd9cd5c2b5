"""Whose GPUs a pass has watched."""

from typing import Any

import pytest
from trainmaster.core.jobs.model import JobState
from trainmaster.core.monitoring.alarms import AT_ONCE, missing_alarms, wanted_of
from trainmaster.core.planning.snapshot import RunningJob
from trainmaster.core.policy.governance import Idle, Watch

from tests.builders import NOON, minutes, of, running, snapshot

GPU = "ml.g5.xlarge"
WATCH = Watch(idle=Idle())
DIGEST = wanted_of(of(1, GPU), WATCH).digest


def gpu_job(name: str = "a", **fields: Any) -> RunningJob:
    return running(name, vector=of(1, GPU), **fields)


def watched(*jobs: RunningJob, watch: Watch | None = WATCH) -> list[str]:
    return [action.job.name for action in missing_alarms(snapshot(*jobs, watch=watch), now=NOON)]


def test_a_job_in_training_gets_its_alarms() -> None:
    assert watched(gpu_job()) == ["a"]


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(gpu_job(guarded=DIGEST), id="it has them"),
        pytest.param(gpu_job(training_since=None), id="it does not train yet"),
        pytest.param(gpu_job(state=JobState.PREEMPTING), id="it is being preempted"),
        pytest.param(gpu_job(state=JobState.STOPPING), id="it is being stopped"),
        pytest.param(running("a", vector=of(1, "ml.c5.xlarge")), id="it has no GPUs"),
        pytest.param(
            running("a", vector=of(1, "ml.p99.metal"), unguarded="unknown-type"),
            id="it cannot be, and says so",
        ),
        pytest.param(
            gpu_job(unguarded="alarm-quota", guard_again_at=NOON + minutes(1)), id="its next try is not due"
        ),
    ],
)
def test_others_do_not(job: RunningJob) -> None:
    assert watched(job) == []


def test_a_changed_policy_makes_them_again() -> None:
    other = Watch(idle=Idle(gpu_below_percent=5))
    assert watched(gpu_job(guarded=DIGEST), watch=other) == ["a"]
    assert watched(gpu_job(guarded=DIGEST), watch=Watch()) == ["a"], "or takes them away"


def test_what_was_refused_is_tried_again_when_its_time_comes() -> None:
    assert watched(gpu_job(unguarded="alarm-quota", guard_again_at=NOON)) == ["a"]


def test_a_forecast_makes_no_alarms() -> None:
    assert watched(gpu_job(), watch=None) == []


def test_a_pass_makes_the_alarms_of_a_few_jobs_at_once() -> None:
    jobs = [gpu_job(f"job-{number:02d}") for number in range(50)]
    assert watched(*jobs) == [f"job-{number:02d}" for number in range(AT_ONCE)]


def test_the_jobs_of_a_paused_pool_are_watched_too() -> None:
    world = snapshot(gpu_job(), watch=WATCH, paused=True)
    assert [action.job.name for action in missing_alarms(world, now=NOON)] == ["a"]
