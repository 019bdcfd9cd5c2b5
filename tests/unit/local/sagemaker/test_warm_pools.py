"""Which jobs leave a warm pool, which can take it, and how it ends."""

from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from local.sagemaker.jobs import TrainingJob
from local.sagemaker.statuses import Secondary, drawn_wait
from local.sagemaker.views import description, event_detail
from local.sagemaker.warm_pools import IN_USE, PoolStatus, WarmPool, left_behind
from tests.integration.local.sagemaker_world import request
from tests.unit.local.sagemaker.test_jobs import NOON, TO_THE_END, a_job, walked

S = Secondary
HOUR = timedelta(hours=1)


def keeping(seconds: int = 3600, **changes: Any) -> TrainingJob:
    return a_job(**(resources(KeepAlivePeriodInSeconds=seconds) | changes))


def resources(**changes: Any) -> dict[str, Any]:
    return {"ResourceConfig": request("job")["ResourceConfig"] | changes}


def status(job: TrainingJob) -> str | None:
    return None if job.warm_pool is None else job.warm_pool.status.value


def test_a_pool_counts_from_the_end_of_its_job():
    job = walked(keeping(), *TO_THE_END)

    assert job.ended_at == NOON + timedelta(minutes=5)
    assert job.warm_pool == WarmPool(
        status=PoolStatus.AVAILABLE, kept_since=NOON + timedelta(minutes=5), kept_for=HOUR
    )
    assert job.warm_pool.due == NOON + timedelta(minutes=65)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param(TO_THE_END, "Available", id="completed"),
        pytest.param(
            (S.PENDING, S.DOWNLOADING, S.STOPPING, S.STOPPED), "Available", id="stopped with instances"
        ),
        pytest.param(
            (S.PENDING, S.DOWNLOADING, S.TRAINING, S.STOPPING, S.MAX_RUNTIME_EXCEEDED),
            "Available",
            id="ran too long",
        ),
        pytest.param((S.PENDING, S.STOPPING, S.STOPPED), None, id="stopped before it had instances"),
        pytest.param((S.PENDING, S.DOWNLOADING, S.TRAINING), None, id="still running"),
    ],
)
def test_a_job_leaves_a_pool_when_it_ends_and_had_instances(steps, expected):
    assert status(walked(keeping(), *steps)) == expected
    assert status(walked(keeping(seconds=0), *steps)) is None


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("AlgorithmError: , exit code: 1", "Available"),
        ("ClientError: Data download failed", "Available"),
        ("InternalServerError: We encountered an internal error. Please try again.", None),
        ("CapacityError: Unable to provision requested ML compute capacity.", None),
    ],
)
def test_a_failure_that_may_be_the_fault_of_the_instances_leaves_no_pool(reason, expected):
    running = walked(keeping(), S.PENDING, S.DOWNLOADING, S.TRAINING)

    assert status(running.failed(reason, NOON + HOUR)) == expected


def test_a_pool_that_was_taken_ends_when_its_new_job_may_have_broken_it():
    running = walked(keeping().on_pool(), S.PENDING, S.DOWNLOADING, S.TRAINING)

    assert status(running) == "InUse"
    assert status(running.failed("InternalServerError: x", NOON + HOUR)) == "Terminated"
    assert status(running.failed("AlgorithmError: x", NOON + HOUR)) == "Available"


def test_a_job_on_a_pool_had_instances_from_its_start():
    assert status(walked(keeping().on_pool(), S.STOPPING, S.STOPPED)) == "Available"


def test_a_pool_ends_when_its_time_has_come_and_not_before():
    pool = left_behind(HOUR, NOON)

    assert pool.at(NOON + timedelta(seconds=3599)) == pool
    ended = pool.at(NOON + timedelta(seconds=3600))
    assert (ended.status, ended.due) == (PoolStatus.TERMINATED, None)
    assert pool.at(NOON + 2 * HOUR) == ended
    assert ended.retained_seconds(NOON + 2 * HOUR) == 3600


@pytest.mark.parametrize(
    ("kept_for", "after", "expected"),
    [
        pytest.param(timedelta(), timedelta(minutes=10), "Terminated", id="zero ends it"),
        pytest.param(timedelta(minutes=10), timedelta(minutes=10), "Terminated", id="shorter than kept"),
        pytest.param(timedelta(minutes=11), timedelta(minutes=10), "Available", id="shorter than before"),
        pytest.param(3 * HOUR, timedelta(minutes=10), "Available", id="longer"),
    ],
)
def test_a_new_time_counts_from_the_end_of_the_job_too(kept_for, after, expected):
    pool = left_behind(HOUR, NOON).kept(kept_for, NOON + after)

    assert pool.status == expected
    assert pool.due == (NOON + kept_for if expected == "Available" else None)


def test_retained_time_runs_until_the_pool_is_taken():
    pool = left_behind(HOUR, NOON)
    taken = pool.taken("next", NOON + timedelta(minutes=20))

    assert pool.retained_seconds(NOON + timedelta(minutes=5)) == 300
    assert taken.retained_seconds(NOON + HOUR) == 1200
    assert (taken.status, taken.reused_by) == (PoolStatus.REUSED, "next")
    assert IN_USE.retained_seconds(NOON) is None


def test_a_description_shows_the_pool_and_bills_its_time_apart():
    job = walked(keeping(), *TO_THE_END)
    shown = description(job, now=NOON + timedelta(minutes=15))

    assert shown["WarmPoolStatus"] == {"Status": "Available", "ResourceRetainedBillableTimeInSeconds": 600}
    assert shown["BillableTimeInSeconds"] == 180
    assert "WarmPoolStatus" not in description(walked(a_job(), *TO_THE_END), now=NOON)


def test_a_description_never_shows_a_pool_beyond_its_time():
    shown = description(walked(keeping(), *TO_THE_END), now=NOON + timedelta(minutes=65))

    assert shown["WarmPoolStatus"]["Status"] == "Terminated"


def test_an_event_has_no_pool():
    assert "WarmPoolStatus" not in event_detail(walked(keeping(), *TO_THE_END))


OTHERS: dict[str, dict[str, Any]] = {
    "role": {"RoleArn": "arn:aws:iam::123456789012:role/other"},
    "type": resources(InstanceType="ml.m5.xlarge", KeepAlivePeriodInSeconds=1),
    "count": resources(InstanceCount=2, KeepAlivePeriodInSeconds=1),
    "volume": resources(VolumeSizeInGB=31, KeepAlivePeriodInSeconds=1),
    "volume key": resources(VolumeKmsKeyId="k", KeepAlivePeriodInSeconds=1),
    "network": {"VpcConfig": {"Subnets": ["subnet-1"], "SecurityGroupIds": ["sg-1"]}},
    "traffic encryption": {"EnableInterContainerTrafficEncryption": True},
    "network isolation": {"EnableNetworkIsolation": True},
    "session tags": {"SessionChainingConfig": {"EnableSessionTagChaining": True}},
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_job_that_differs_in_one_of_these_does_not_match(name):
    assert keeping(**OTHERS[name]).warm_key != keeping().warm_key


def test_the_subnets_and_groups_of_a_network_both_count():
    one: dict[str, Any] = {"VpcConfig": {"Subnets": ["a", "b"], "SecurityGroupIds": ["x"]}}
    turned: dict[str, Any] = {"VpcConfig": {"Subnets": ["b", "a"], "SecurityGroupIds": ["x"]}}
    other_group: dict[str, Any] = {"VpcConfig": {"Subnets": ["a", "b"], "SecurityGroupIds": ["y"]}}

    assert keeping(**one).warm_key == keeping(**turned).warm_key
    assert keeping(**one).warm_key != keeping(**other_group).warm_key


def test_what_is_left_out_equals_what_is_off():
    off: dict[str, Any] = {
        "EnableNetworkIsolation": False,
        "EnableInterContainerTrafficEncryption": False,
        "SessionChainingConfig": {"EnableSessionTagChaining": False},
    }

    assert keeping(**off).warm_key == keeping().warm_key
    assert replace(keeping(60), tags={}).warm_key == keeping().warm_key


def test_a_job_that_keeps_nothing_alive_takes_no_pool():
    assert a_job().warm_key is None


@pytest.mark.parametrize(
    ("waits_in", "share"),
    [(S.STARTING, 0.1), (S.PENDING, 0.1), (S.DOWNLOADING, 0.1), (S.UPLOADING, 1), (S.STOPPING, 1)],
)
def test_a_warm_start_takes_a_tenth_of_a_cold_one(waits_in, share):
    cold = drawn_wait(waits_in, Random(1), is_warm=False)
    warm = drawn_wait(waits_in, Random(1), is_warm=True)

    assert warm.total_seconds() == pytest.approx(cold.total_seconds() * share)
