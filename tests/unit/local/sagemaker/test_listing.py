"""ListTrainingJobs: pages, orders and filters."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.sagemaker.job_listing import page
from local.sagemaker.jobs import TrainingJob
from local.sagemaker.statuses import Secondary
from local.sagemaker.warm_pools import IN_USE, PoolStatus, WarmPool
from local.wire import AwsError
from tests.unit.local.sagemaker.test_jobs import NOON, a_job

S = Secondary


def a_job_of(number: int, *, stopped: bool = False) -> TrainingJob:
    """Named and created in the order of its number."""
    created = NOON + timedelta(seconds=number)
    job = replace(a_job(), name=f"job-{number:02}", created_at=created, modified_at=created)
    if stopped:
        job = job.moved_to(S.STOPPING, created).moved_to(S.STOPPED, created)
    return job


def names(answer) -> list[str]:
    return [summary["TrainingJobName"] for summary in answer["TrainingJobSummaries"]]


def pages(jobs, **params) -> list[list[str]]:
    found = [page(jobs, params, now=NOON)]
    while "NextToken" in found[-1]:
        found.append(page(jobs, params | {"NextToken": found[-1]["NextToken"]}, now=NOON))
    return [names(one) for one in found]


def test_a_page_has_ten_jobs_newest_first():
    jobs = [a_job_of(number) for number in range(25)]

    found = pages(jobs)

    assert [len(one) for one in found] == [10, 10, 5]
    assert found[0][0] == "job-24"
    assert found[2][-1] == "job-00"


def test_the_status_is_asked_for_after_the_page_was_cut():
    jobs = [a_job_of(number, stopped=number > 3) for number in range(6)]

    assert pages(jobs, MaxResults=2, StatusEquals="InProgress") == [
        [],
        ["job-03", "job-02"],
        ["job-01", "job-00"],
    ]


def on_plan(job: TrainingJob, arn: str) -> TrainingJob:
    return replace(job, spec=replace(job.spec, plan_arn=arn))


def test_name_and_time_are_asked_for_before():
    jobs = [a_job_of(number) for number in range(12)]

    assert pages(jobs, MaxResults=2, NameContains="-1") == [["job-11", "job-10"]]
    after = {"CreationTimeAfter": NOON + timedelta(seconds=9), "SortOrder": "Ascending"}
    assert pages(jobs, **after) == [["job-10", "job-11"]]
    assert pages(jobs, CreationTimeBefore=NOON + timedelta(seconds=1)) == [["job-00"]]
    assert pages(jobs, LastModifiedTimeAfter=NOON + timedelta(seconds=10)) == [["job-11"]]


def test_the_status_of_the_warm_pool_is_asked_for_after_the_page_was_cut_too():
    kept = WarmPool(status=PoolStatus.AVAILABLE, kept_since=NOON, kept_for=timedelta(hours=1))
    jobs = [a_job_of(1), replace(a_job_of(2), warm_pool=kept), replace(a_job_of(3), warm_pool=IN_USE)]

    assert pages(jobs, WarmPoolStatusEquals="Available") == [["job-02"]]
    assert pages(jobs, WarmPoolStatusEquals="InUse") == [["job-03"]]
    assert pages(jobs, WarmPoolStatusEquals="Reused") == [[]]
    assert pages(jobs, WarmPoolStatusEquals="Available", MaxResults=1) == [[], ["job-02"], []]


def test_the_training_plan_is_asked_for_after_the_page_was_cut_too():
    jobs = [a_job_of(1), on_plan(a_job_of(2), "arn:spring"), on_plan(a_job_of(3), "arn:autumn")]

    assert pages(jobs, TrainingPlanArnEquals="arn:spring") == [["job-02"]]
    assert pages(jobs, TrainingPlanArnEquals="arn:spring", MaxResults=1) == [[], ["job-02"], []]
    assert pages(jobs, TrainingPlanArnEquals="arn:summer") == [[]]
    assert pages(jobs) == [["job-03", "job-02", "job-01"]]


def test_a_summary_shows_the_warm_pool():
    kept = WarmPool(status=PoolStatus.AVAILABLE, kept_since=NOON, kept_for=timedelta(hours=1))
    jobs = [a_job_of(1), replace(a_job_of(2), warm_pool=kept)]

    shown = page(jobs, {}, now=NOON + timedelta(minutes=2))["TrainingJobSummaries"]

    assert [one.get("WarmPoolStatus") for one in shown] == [
        {"Status": "Available", "ResourceRetainedBillableTimeInSeconds": 120},
        None,
    ]


@pytest.mark.parametrize("token", ["x", "bm8=", "WyJOYW1lIiwgMSwgIngiXQ=="])
def test_a_token_of_nowhere_is_refused(token):
    with pytest.raises(AwsError):
        page([a_job_of(1)], {"NextToken": token}, now=NOON)


def test_a_token_of_another_order_is_refused():
    jobs = [a_job_of(number) for number in range(3)]
    token = page(jobs, {"MaxResults": 1}, now=NOON)["NextToken"]

    with pytest.raises(AwsError):
        page(jobs, {"SortBy": "Name", "NextToken": token}, now=NOON)


@given(
    st.sets(st.integers(0, 60)),
    st.integers(1, 7),
    st.sampled_from(["Name", "CreationTime", "Status"]),
    st.sampled_from(["Ascending", "Descending"]),
)
def test_all_pages_together_hold_every_job_once_in_order(numbers, size, by, order):
    jobs = [a_job_of(number, stopped=number % 2 == 0) for number in numbers]

    found = [name for one in pages(jobs, MaxResults=size, SortBy=by, SortOrder=order) for name in one]

    assert sorted(found) == sorted(job.name for job in jobs)
    if by != "Status":
        assert found == sorted(found, reverse=order == "Descending")


def test_a_job_that_comes_between_two_pages_repeats_none():
    jobs = [a_job_of(number) for number in range(4)]
    first = page(jobs, {"MaxResults": 2}, now=NOON)

    second = page([*jobs, a_job_of(9)], {"MaxResults": 2, "NextToken": first["NextToken"]}, now=NOON)

    assert names(second) == ["job-01", "job-00"]
