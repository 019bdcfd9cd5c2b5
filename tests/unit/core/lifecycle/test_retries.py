"""Whether a job comes back after an attempt failed."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from trainmaster.core.jobs.failures import Diagnosis, FailureClass
from trainmaster.core.jobs.model import Job
from trainmaster.core.lifecycle.retries import Failure, RetryAnswer, answer, may_requeue, most_retries
from trainmaster.core.policy.governance import Backoff, OnOom, Recovery

from tests.builders import changed, live_job, minutes

C = FailureClass
ON_OOM = Recovery(on_oom=OnOom(batch=("bs",), accumulation=("steps",)))
HALVES = live_job(halves_batch=True)


def failure(of: Job, found: FailureClass, trained: float = 0, **fields: Any) -> Failure:
    """``trained`` is in minutes."""
    diagnosis = Diagnosis(failure_class=found, advice="Do this.")
    values: dict[str, Any] = {"text": "AlgorithmError: x", "hyperparameters": {"bs": "8", "steps": "1"}}
    return Failure(job=of, trained=minutes(trained), diagnosis=diagnosis, **values | fields)


@pytest.mark.parametrize(
    ("one", "recovery", "comes_back"),
    [
        pytest.param(failure(live_job(), C.NETWORK, 120), Recovery(), True, id="two hours earn a retry"),
        pytest.param(failure(live_job(), C.HARDWARE, 119), Recovery(), False, id="a minute less does not"),
        pytest.param(
            failure(live_job(productive=minutes(100)), C.NETWORK, 20),
            Recovery(),
            True,
            id="time of attempts before that did not fail counts too",
        ),
        pytest.param(
            failure(live_job(), C.SERVICE), Recovery(), True, id="what AWS is to blame for: at once"
        ),
        pytest.param(failure(live_job(), C.CAPACITY), Recovery(), True, id="no capacity: at once"),
        pytest.param(failure(live_job(), C.USER_CODE, 999), Recovery(), False, id="a bug stays a bug"),
        pytest.param(failure(live_job(), C.UNKNOWN, 999), Recovery(), False, id="unknown: not by default"),
        pytest.param(
            failure(live_job(), C.UNKNOWN, 120),
            Recovery(retry_classes=frozenset({C.UNKNOWN})),
            True,
            id="the policy names the classes",
        ),
        pytest.param(
            failure(live_job(), C.SERVICE),
            Recovery(retry_classes=frozenset()),
            False,
            id="and may name none at all",
        ),
        pytest.param(failure(live_job(retries=2), C.SERVICE), Recovery(), True, id="the third of three"),
        pytest.param(failure(live_job(retries=3), C.SERVICE), Recovery(), False, id="all used up"),
        pytest.param(
            failure(replace(live_job(retries=1), spec=replace(live_job().spec, retries=1)), C.SERVICE),
            Recovery(),
            False,
            id="its owner wants fewer",
        ),
        pytest.param(
            failure(replace(live_job(retries=3), spec=replace(live_job().spec, retries=5)), C.SERVICE),
            Recovery(),
            False,
            id="its owner cannot have more",
        ),
        pytest.param(failure(live_job(), C.SERVICE), Recovery(max_retries=0), False, id="none are allowed"),
        pytest.param(failure(HALVES, C.GPU_OOM), ON_OOM, True, id="half the batch: at once"),
        pytest.param(failure(live_job(), C.GPU_OOM), ON_OOM, False, id="not without its owner's wish"),
        pytest.param(failure(HALVES, C.HOST_OOM), ON_OOM, False, id="only memory of GPUs"),
        pytest.param(failure(HALVES, C.GPU_OOM), Recovery(), False, id="the policy has to name the batch"),
        pytest.param(
            failure(HALVES, C.GPU_OOM, hyperparameters={"bs": "1"}), ON_OOM, False, id="nothing to halve"
        ),
        pytest.param(
            failure(changed(HALVES, retries=3), C.GPU_OOM), ON_OOM, False, id="half the batch is charged too"
        ),
    ],
)
def test_whether_it_comes_back(one: Failure, recovery: Recovery, *, comes_back: bool) -> None:
    end = answer(one, recovery)
    assert (end.retry is not None) == comes_back
    assert end.reason.code is one.diagnosis.failure_class.code


@pytest.mark.parametrize(
    ("one", "recovery", "why"),
    [
        pytest.param(
            failure(live_job(), C.USER_CODE),
            Recovery(),
            "failures of class user-code are not retried",
            id="class",
        ),
        pytest.param(
            failure(live_job(productive=minutes(10)), C.NETWORK, 5),
            Recovery(),
            "it was in training for 900 s since its last charged failure, and a retry needs 7200 s",
            id="time",
        ),
        pytest.param(
            failure(live_job(retries=3), C.SERVICE),
            Recovery(),
            "its retries are used up, 3 of 3",
            id="used up",
        ),
        pytest.param(
            failure(live_job(), C.SERVICE),
            Recovery(max_retries=0),
            "no failure of it is, by trainmaster:retries or recovery.max_retries",
            id="none at all",
        ),
        pytest.param(
            failure(HALVES, C.GPU_OOM),
            Recovery(),
            "failures of class gpu-oom are not retried,"
            " and the policy names no batch to halve (recovery.on_oom)",
            id="its wish cannot be granted: policy",
        ),
        pytest.param(
            failure(HALVES, C.GPU_OOM, hyperparameters={}),
            ON_OOM,
            "failures of class gpu-oom are not retried,"
            " and none of its hyperparameters bs is a whole number of 2 or more to halve",
            id="its wish cannot be granted: request",
        ),
    ],
)
def test_a_refusal_says_why_after_the_advice_and_before_the_failure_reason(
    one: Failure, recovery: Recovery, why: str
) -> None:
    end = answer(one, recovery)
    assert end.reason.message == f"Do this. Not retried: {why}. SageMaker says: AlgorithmError: x"
    assert end.of_attempt is not None
    assert end.of_attempt.message == f"Not retried: {why}. SageMaker says: AlgorithmError: x"


def test_a_failure_reason_is_cut_so_that_the_whole_message_fits() -> None:
    message = answer(failure(live_job(), C.UNKNOWN, text="x" * 1024), Recovery()).reason.message
    assert len(message) == 1024
    assert message.startswith("Do this. Not retried: ")


def test_a_retry_says_of_what_class_what_to_do_and_how_many_are_left() -> None:
    end = answer(failure(live_job(retries=1), C.SERVICE), Recovery())
    assert end.retry is not None
    assert end.retry.waiting.code == "backoff"
    assert end.retry.waiting.message == "service: Do this. This is retry 2 of 3"
    assert end.reason.message == "It is requeued, retry 2 of 3. SageMaker says: AlgorithmError: x"


def test_a_retry_with_half_the_batch_says_so() -> None:
    retry = answer(failure(HALVES, C.GPU_OOM), ON_OOM).retry
    assert retry is not None
    assert retry.rewritten == {"bs": "4", "steps": "2"}
    assert retry.waiting.message == (
        "gpu-oom: Do this. This is retry 1 of 3; with half the batch: bs 8 to 4, steps 1 to 2"
    )


def test_a_retried_class_needs_no_halving() -> None:
    recovery = replace(ON_OOM, retry_classes=frozenset({C.GPU_OOM}))
    end = answer(failure(HALVES, C.GPU_OOM, 120, hyperparameters={"bs": "1"}), recovery)
    assert end.retry is not None
    assert end.retry.rewritten == {}


@pytest.mark.parametrize(
    ("retries", "most"),
    [
        pytest.param(0, 60, id="the first within a minute"),
        pytest.param(1, 120, id="then within two"),
        pytest.param(2, 180, id="never more than the policy's longest"),
    ],
)
def test_the_back_off_doubles_up_to_the_policy_s_longest(retries: int, most: float) -> None:
    recovery = Recovery(backoff=Backoff(first=minutes(1), max=minutes(3)), max_retries=9)
    waits = [waits_for(f"{number:026}", retries, recovery) for number in range(200)]
    assert all(timedelta(seconds=1) <= wait <= timedelta(seconds=most) for wait in waits)
    assert max(waits) > timedelta(seconds=most * 0.9), "jitter is full"
    assert min(waits) < timedelta(seconds=most * 0.1), "jitter is full"


def waits_for(entry_id: str, retries: int, recovery: Recovery) -> timedelta:
    end: RetryAnswer = answer(failure(live_job(retries=retries, entry_id=entry_id), C.SERVICE), recovery)
    assert end.retry is not None
    return end.retry.wait


@pytest.mark.parametrize(
    ("wanted", "allowed", "most"), [(None, 3, 3), (2, 3, 2), (5, 3, 3), (0, 3, 0), (1, 0, 0)]
)
def test_the_smaller_of_tag_and_policy_counts(wanted: int | None, allowed: int, most: int) -> None:
    one = replace(live_job(), spec=replace(live_job().spec, retries=wanted))
    assert most_retries(one, Recovery(max_retries=allowed)) == most


def test_what_hangs_each_time_comes_back_as_often_as_it_may_be_retried() -> None:
    assert [may_requeue(live_job(idle_requeues=times), Recovery()) for times in range(5)] == [
        True,
        True,
        True,
        False,
        False,
    ]
