"""Retries: whether a job comes back after a failed attempt, by failure class, time earned, retries left.

An end because AWS had no instances is no failure: ``decision`` handles it, and it is not charged.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.failures import Diagnosis, FailureClass
from trainmaster.core.jobs.model import Job
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle.backoff import backoff
from trainmaster.core.policy.governance import OnOom, Recovery

SMALLEST = 2
"""Smallest batch that can be halved."""
_WHOLE = re.compile(r'(?P<quote>"?)(?P<number>[1-9][0-9]{0,8})(?P=quote)')


@dataclass(frozen=True, slots=True, kw_only=True)
class Halving:
    rewritten: Mapping[str, str]
    """Hyperparameters that change, with their new values."""
    says: str
    """Text for people on what changes: ``batch_size 8 to 4``."""


def halve(hyperparameters: Mapping[str, str], names: OnOom) -> Halving | None:
    """Halve the first batch that the request has, and double the first accumulation; None: nothing to halve.

    A request without an accumulation does not get one: a script that does not know the name would not start.
    """
    batch = _first(hyperparameters, names.batch, least=SMALLEST)
    if batch is None:
        return None
    changes = [(batch, _number(hyperparameters[batch]) // 2)]
    accumulation = _first(hyperparameters, names.accumulation, least=1)
    if accumulation is not None:
        changes.append((accumulation, _number(hyperparameters[accumulation]) * 2))
    texts = [f"{name} {_number(hyperparameters[name])} to {value}" for name, value in changes]
    kept = "" if accumulation else ", which makes each step smaller"
    return Halving(
        rewritten={name: _like(hyperparameters[name], value) for name, value in changes},
        says=", ".join(texts) + kept,
    )


def _first(hyperparameters: Mapping[str, str], names: Iterable[str], *, least: int) -> str | None:
    return next((name for name in names if _number(hyperparameters.get(name, "")) >= least), None)


def _number(text: str) -> int:
    """Parse a whole number; return 0 if the text is none."""
    match = _WHOLE.fullmatch(text)
    return int(match["number"]) if match else 0


def _like(text: str, value: int) -> str:
    match = _WHOLE.fullmatch(text)
    assert match is not None, text
    return f"{match['quote']}{value}{match['quote']}"


MAX_MESSAGE = 1024
"""Most characters of a message; as many as FailureReason may have."""
NO_RETRIES = "no failure of it is, by trainmaster:retries or recovery.max_retries"
AT_ONCE = frozenset({FailureClass.SERVICE, FailureClass.CAPACITY})
"""Failures that the job does not cause, which need no productive time before a retry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One attempt that failed, and what is known of it."""

    job: Job
    """The job with the attempt still live."""
    trained: timedelta
    """Time that the attempt was in status Training."""
    text: str
    """FailureReason of the training job."""
    diagnosis: Diagnosis
    hyperparameters: Mapping[str, str] = field(default_factory=dict)
    """Hyperparameters of the attempt; only given where the batch may be halved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """A further attempt after one that failed; it is charged to the job."""

    wait: timedelta
    """Back-off before it."""
    waiting: Reason
    rewritten: Mapping[str, str] = field(default_factory=dict)
    """Hyperparameters that the batch was halved with; empty where it was not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryAnswer:
    """Answer to a failure: whether the job comes back, and what its history says about it."""

    reason: Reason
    of_attempt: Reason | None = None
    """Reason to be kept with the attempt; None: the same as the job's."""
    retry: Retry | None = None
    """The retry; None: the job has failed."""


def may_halve(job: Job, diagnosis: Diagnosis) -> bool:
    """Tell whether the batch may be halved: the owner allows it, and the failure is of that kind."""
    return job.spec.halves_batch and diagnosis.failure_class is FailureClass.GPU_OOM


def answer(failure: Failure, recovery: Recovery) -> RetryAnswer:
    """Decide about a failed attempt: the job is requeued for another one, or has failed."""
    halving = _halving(failure, recovery)
    refusal = _used_up(failure, recovery) or (None if halving else _refusal(failure, recovery))
    if refusal is not None:
        return _final(failure, refusal)
    return _again(failure, recovery, halving)


def _halving(failure: Failure, recovery: Recovery) -> Halving | None:
    if recovery.on_oom is None or not may_halve(failure.job, failure.diagnosis):
        return None
    return halve(failure.hyperparameters, recovery.on_oom)


def _used_up(failure: Failure, recovery: Recovery) -> str | None:
    most = most_retries(failure.job, recovery)
    if failure.job.comebacks.retries < most:
        return None
    return f"its retries are used up, {failure.job.comebacks.retries} of {most}" if most else NO_RETRIES


def _refusal(failure: Failure, recovery: Recovery) -> str | None:
    """Return why this failure earns no retry; None if it does."""
    failure_class = failure.diagnosis.failure_class
    if failure_class not in recovery.retry_classes:
        return f"failures of class {failure_class} are not retried{_not_halved(failure, recovery)}"
    productive = failure.job.comebacks.productive + failure.trained
    if failure_class in AT_ONCE or productive >= recovery.min_runtime:
        return None
    return (
        f"it was in training for {_seconds(productive)} s since its last charged failure,"
        f" and a retry needs {_seconds(recovery.min_runtime)} s"
    )


def _not_halved(failure: Failure, recovery: Recovery) -> str:
    if not may_halve(failure.job, failure.diagnosis):
        return ""
    if recovery.on_oom is None:
        return ", and the policy names no batch to halve (recovery.on_oom)"
    names = ", ".join(recovery.on_oom.batch)
    return f", and none of its hyperparameters {names} is a whole number of 2 or more to halve"


def _final(failure: Failure, refusal: str) -> RetryAnswer:
    diagnosis = failure.diagnosis
    text = f"Not retried: {refusal}. SageMaker says: {failure.text}"
    return RetryAnswer(
        reason=_reason(diagnosis, f"{diagnosis.advice} {text}"), of_attempt=_reason(diagnosis, text)
    )


def _again(failure: Failure, recovery: Recovery, halving: Halving | None) -> RetryAnswer:
    job, diagnosis = failure.job, failure.diagnosis
    halved = "" if halving is None else f"; with half the batch: {halving.says}"
    count = f"retry {job.comebacks.retries + 1} of {most_retries(job, recovery)}"
    message = f"{diagnosis.failure_class}: {diagnosis.advice} This is {count}{halved}"
    comes_back = f"It is requeued, {count}{halved}. SageMaker says: {failure.text}"
    retry = Retry(
        wait=backoff(
            job.spec.entry_id, job.comebacks.retries, first=recovery.backoff.first, most=recovery.backoff.max
        ),
        waiting=Reason(code=ReasonCode.BACKOFF, message=message[:MAX_MESSAGE]),
        rewritten={} if halving is None else halving.rewritten,
    )
    return RetryAnswer(reason=_reason(diagnosis, comes_back), retry=retry)


def _reason(diagnosis: Diagnosis, message: str) -> Reason:
    return Reason(code=diagnosis.failure_class.code, message=message[:MAX_MESSAGE])


def _seconds(time: timedelta) -> int:
    return int(time.total_seconds())


def most_retries(job: Job, recovery: Recovery) -> int:
    """Return the retries that the policy allows, or fewer if the job's owner wants fewer."""
    wanted = job.spec.retries
    return recovery.max_retries if wanted is None else min(wanted, recovery.max_retries)


def may_requeue(job: Job, recovery: Recovery) -> bool:
    """Tell whether a stop because of idle or underused GPUs requeues the job.

    It is not charged as a retry, but a job that hangs each time must end: it is requeued at most as many
    times as it may be retried.
    """
    return job.comebacks.idle_requeues < most_retries(job, recovery)
