"""The sections of the policy that govern jobs while they run: their defaults, keys and mistakes."""

from datetime import timedelta
from typing import Any

import pytest
from trainmaster.core.errors import FieldError, PolicyViolationError
from trainmaster.core.jobs.failures import FailureClass
from trainmaster.core.policy import parse_policy
from trainmaster.core.policy.governance import (
    Backoff,
    Checkpoints,
    Fallback,
    Governing,
    Idle,
    OnOom,
    Reaction,
    Recovery,
    Spot,
    UnmanagedJobs,
    UnmanagedThen,
    Utilization,
)
from trainmaster.core.policy.notification_policy import Notifications
from trainmaster.core.policy.principals import PrincipalKind, PrincipalPattern

RETRIED = {FailureClass.SERVICE, FailureClass.CAPACITY, FailureClass.HARDWARE, FailureClass.NETWORK}


def governing(**sections: Any) -> Governing:
    return parse_policy(sections).governing


def errors_of(document: object) -> tuple[FieldError, ...]:
    with pytest.raises(PolicyViolationError) as caught:
        parse_policy(document)
    return caught.value.errors


WATCHED = Idle(
    gpu_below_percent=1,
    for_=timedelta(minutes=15),
    period=timedelta(minutes=5),
    then=Reaction.NOTIFY,
    warn_first=timedelta(minutes=10),
)


def test_an_empty_document_watches_gpus_and_retries_what_is_nobodys_fault() -> None:
    assert governing() == Governing(
        unmanaged_jobs=UnmanagedJobs(then=UnmanagedThen.AUDIT, except_principals=(), except_tuning_jobs=True),
        idle=WATCHED,
        utilization=None,
        checkpoints=Checkpoints(max_age=timedelta(hours=2)),
        recovery=Recovery(
            min_runtime=timedelta(hours=2),
            max_retries=3,
            backoff=Backoff(first=timedelta(minutes=1), max=timedelta(minutes=30)),
            retry_classes=frozenset(RETRIED),
            on_oom=None,
        ),
        spot=Spot(
            max_interruptions=3,
            min_progress_ratio=0.5,
            max_wait=timedelta(hours=6),
            fallback=Fallback.ON_DEMAND,
        ),
        notifications=Notifications(email=(), events=True),
    )


def test_every_key_is_read() -> None:
    found = governing(
        unmanaged_jobs={
            "then": "adopt",
            "except_principals": ["arn:aws:iam::111122223333:role/ops-*"],
            "except_tuning_jobs": False,
        },
        idle={"gpu_below_percent": 5, "for": "30m", "period": "10m", "then": "requeue", "warn_first": "0s"},
        utilization={"gpu_below_percent": 60, "for": "2h", "then": "notify"},
        checkpoints={"max_age": "1h"},
        recovery={
            "min_runtime": "0s",
            "max_retries": 7,
            "backoff": {"first": "5m", "max": "1h"},
            "retry_classes": ["service", "gpu-oom"],
            "on_oom": {"batch": ["batch_size"], "accumulation": ["steps"]},
        },
        spot={"max_interruptions": 0, "min_progress_ratio": 1, "max_wait": "1d", "fallback": "none"},
        notifications={"email": ["ml-platform@example.com"], "events": False},
    )
    assert found == Governing(
        unmanaged_jobs=UnmanagedJobs(
            then=UnmanagedThen.ADOPT,
            except_principals=(
                PrincipalPattern(
                    partition="aws", account_id="111122223333", kind=PrincipalKind.ROLE, path="", name="ops-*"
                ),
            ),
            except_tuning_jobs=False,
        ),
        idle=Idle(
            gpu_below_percent=5,
            for_=timedelta(minutes=30),
            period=timedelta(minutes=10),
            then=Reaction.REQUEUE,
            warn_first=timedelta(),
        ),
        utilization=Utilization(gpu_below_percent=60, for_=timedelta(hours=2)),
        checkpoints=Checkpoints(max_age=timedelta(hours=1)),
        recovery=Recovery(
            min_runtime=timedelta(),
            max_retries=7,
            backoff=Backoff(first=timedelta(minutes=5), max=timedelta(hours=1)),
            retry_classes=frozenset({FailureClass.SERVICE, FailureClass.GPU_OOM}),
            on_oom=OnOom(batch=("batch_size",), accumulation=("steps",)),
        ),
        spot=Spot(
            max_interruptions=0, min_progress_ratio=1.0, max_wait=timedelta(days=1), fallback=Fallback.NONE
        ),
        notifications=Notifications(email=("ml-platform@example.com",), events=False),
    )


@pytest.mark.parametrize("off", ["off", False])
def test_idle_off_watches_nothing(off: object) -> None:
    assert governing(idle=off).idle is None
    assert governing(idle=off).watch.idle is None


def test_a_key_without_a_value_is_not_written() -> None:
    assert governing(idle=None).idle == WATCHED


@pytest.mark.parametrize("on", ["on", True])
def test_idle_on_is_refused_and_says_that_it_is_on_already(on: object) -> None:
    (error,) = errors_of({"idle": on})
    assert error.field == "idle"
    assert "it is on where it is not written" in error.message
    assert error.hint


@pytest.mark.parametrize("defaults", [1, 2, 3])
@pytest.mark.parametrize("document", [{}, {"idle": None}], ids=["not written", "a key without a value"])
def test_a_revision_from_before_these_defaults_watches_nothing(
    document: dict[str, Any], defaults: int
) -> None:
    stored = parse_policy(document, is_stored=True, defaults=defaults)
    assert stored.governing.idle is None
    assert parse_policy(document).governing.idle == WATCHED, "the next put has them"


@pytest.mark.parametrize("defaults", [1, 2, 3, 4, 5])
def test_a_written_section_means_the_same_under_all_defaults(defaults: int) -> None:
    stored = parse_policy({"idle": {"for": "30m"}}, is_stored=True, defaults=defaults)
    assert stored.governing.idle == Idle(for_=timedelta(minutes=30), then=Reaction.STOP)


def test_a_section_that_is_written_empty_is_watched_with_its_defaults() -> None:
    found = governing(idle={}, utilization={})
    assert found.idle == Idle(
        gpu_below_percent=1,
        for_=timedelta(minutes=15),
        period=timedelta(minutes=5),
        then=Reaction.STOP,
        warn_first=timedelta(minutes=10),
    )
    assert found.utilization == Utilization(gpu_below_percent=80, for_=timedelta(hours=1))


def test_a_bare_section_is_absent() -> None:
    assert governing(idle=None, utilization=None, recovery={"on_oom": None}) == Governing()


def test_no_class_at_all_may_be_retried() -> None:
    assert governing(recovery={"retry_classes": []}).recovery.retry_classes == frozenset()


@pytest.mark.parametrize(
    ("document", "field"),
    [
        pytest.param({"unmanaged_jobs": "stop"}, "unmanaged_jobs", id="a section is a mapping"),
        pytest.param({"unmanaged_jobs": {"then": "kill"}}, "unmanaged_jobs.then", id="a word of the list"),
        pytest.param({"unmanaged_jobs": {"then": ["stop"]}}, "unmanaged_jobs.then", id="and a text"),
        pytest.param(
            {"unmanaged_jobs": {"except_principals": ["arn:aws:iam::111122223333:user/ada"]}},
            "unmanaged_jobs.except_principals[0]",
            id="a training job does not tell its user",
        ),
        pytest.param(
            {"unmanaged_jobs": {"except_principals": ["ops"]}},
            "unmanaged_jobs.except_principals[0]",
            id="a principal is an ARN",
        ),
        pytest.param({"idle": []}, "idle", id="a list is no section"),
        pytest.param({"idle": {"gpu_below_percent": 0}}, "idle.gpu_below_percent", id="below zero is never"),
        pytest.param({"idle": {"gpu_below_percent": 101}}, "idle.gpu_below_percent", id="one GPU has 100"),
        pytest.param({"idle": {"period": "90s"}}, "idle.period", id="CloudWatch has periods of minutes"),
        pytest.param({"idle": {"period": "0s"}}, "idle.period", id="a period is some time"),
        pytest.param({"idle": {"period": "30s", "for": "1m"}}, "idle.period", id="a short one is told once"),
        pytest.param({"idle": {"for": "16m"}}, "idle.for", id="not whole periods"),
        pytest.param({"idle": {"for": "0s"}}, "idle.for", id="no time at all"),
        pytest.param({"idle": {"for": "4m"}}, "idle.for", id="less than one period"),
        pytest.param({"idle": {"for": "25h"}}, "idle.for", id="longer than a day by short periods"),
        pytest.param({"idle": {"for": "8d", "period": "1h"}}, "idle.for", id="longer than a week"),
        pytest.param({"idle": {"then": "kill"}}, "idle.then", id="stop is the word"),
        pytest.param({"idle": {"min_age": "1h"}}, "idle.min_age", id="an unknown key"),
        pytest.param({"utilization": {"then": "kill"}}, "utilization.then", id="no such reaction"),
        pytest.param({"utilization": {"warn_first": "0"}}, "utilization.warn_first", id="no unit"),
        pytest.param({"utilization": {"for": "7m"}}, "utilization.for", id="whole periods of five minutes"),
        pytest.param({"utilization": {"for": "2d"}}, "utilization.for", id="a day at most"),
        pytest.param({"checkpoints": {"max_age": "30s"}}, "checkpoints.max_age", id="too new"),
        pytest.param({"recovery": {"max_retries": -1}}, "recovery.max_retries", id="not negative"),
        pytest.param(
            {"recovery": {"backoff": {"first": "1h"}}}, "recovery.backoff.first", id="first within max"
        ),
        pytest.param({"recovery": {"backoff": {"max": "0s"}}}, "recovery.backoff.max", id="no wait at all"),
        pytest.param(
            {"recovery": {"retry_classes": ["service", "oom"]}}, "recovery.retry_classes[1]", id="no class"
        ),
        pytest.param({"recovery": {"retry_classes": "service"}}, "recovery.retry_classes", id="no list"),
        pytest.param({"recovery": {"on_oom": {}}}, "recovery.on_oom.batch", id="what to halve"),
        pytest.param({"recovery": {"on_oom": {"batch": [""]}}}, "recovery.on_oom.batch[0]", id="no name"),
        pytest.param(
            {"recovery": {"on_oom": {"batch": ["b"], "accumulation": [1]}}},
            "recovery.on_oom.accumulation[0]",
            id="a hyperparameter's name is text",
        ),
        pytest.param({"spot": {"max_interruptions": "3"}}, "spot.max_interruptions", id="a number"),
        pytest.param({"spot": {"min_progress_ratio": True}}, "spot.min_progress_ratio", id="true is none"),
        pytest.param({"spot": {"min_progress_ratio": 1.1}}, "spot.min_progress_ratio", id="a share"),
        pytest.param(
            {"spot": {"min_progress_ratio": float("nan")}}, "spot.min_progress_ratio", id="not a number"
        ),
        pytest.param({"spot": {"fallback": 1}}, "spot.fallback", id="a word"),
        pytest.param({"spot": {"max_wait": "29d"}}, "spot.max_wait", id="longer than a job may run"),
        pytest.param({"loss": "stop"}, "loss", id="a word is no section"),
        pytest.param({"loss": {"metric": ""}}, "loss.metric", id="no name"),
        pytest.param({"loss": {"metric": "a\nb"}}, "loss.metric", id="two lines"),
        pytest.param({"loss": {"non_finite": "requeue"}}, "loss.non_finite", id="it would resume the same"),
        pytest.param({"loss": {"divergence": 3}}, "loss.divergence", id="a factor alone"),
        pytest.param({"loss": {"divergence": {"factor": 1}}}, "loss.divergence.factor", id="any rise"),
        pytest.param(
            {"loss": {"divergence": {"factor": float("inf")}}}, "loss.divergence.factor", id="not finite"
        ),
        pytest.param({"loss": {"plateau": {"for": "5m"}}}, "loss.plateau.for", id="one look"),
        pytest.param({"loss": {"plateau": {"min_delta": -0.1}}}, "loss.plateau.min_delta", id="a rise"),
        pytest.param({"loss": {"plateau": {"then": "kill"}}}, "loss.plateau.then", id="no such choice"),
        pytest.param({"loss": {"warn_first": 10}}, "loss.warn_first", id="a number without unit"),
        pytest.param({"loss": {"divergance": {}}}, "loss.divergance", id="a typing error"),
        pytest.param({"notifications": {"email": ["me"]}}, "notifications.email[0]", id="no address"),
        pytest.param(
            {"notifications": {"email": ["a@example.com\n"]}}, "notifications.email[0]", id="a newline"
        ),
        pytest.param({"notifications": {"events": "yes"}}, "notifications.events", id="yes is no flag"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_by_its_path(document: object, field: str) -> None:
    errors = errors_of(document)
    assert [error.field for error in errors] == [field]
    assert all(error.message and error.hint for error in errors)


@pytest.mark.parametrize(
    ("idle", "looks_back"),
    [
        pytest.param({"for": "1d", "period": "5m"}, timedelta(days=1), id="a day of short periods"),
        pytest.param({"for": "7d", "period": "1h"}, timedelta(days=7), id="a week of hours"),
        pytest.param({"for": "1m", "period": "1m"}, timedelta(minutes=1), id="one minute"),
    ],
)
def test_an_alarm_looks_back_as_far_as_cloudwatch_lets_it(
    idle: dict[str, Any], looks_back: timedelta
) -> None:
    found = governing(idle=idle).idle
    assert found is not None
    assert found.for_ == looks_back


def test_a_word_that_is_nearly_right_is_answered_with_the_right_one() -> None:
    (then, retried) = errors_of({"idle": {"then": "requeu"}, "recovery": {"retry_classes": ["gpu_oom"]}})
    assert then.message == 'must be notify or stop or requeue, not "requeu"'
    assert then.hint == "did you mean requeue?"
    assert retried.hint == "did you mean gpu-oom?"


def test_mistakes_of_all_sections_are_reported_at_once() -> None:
    document = {
        "unmanaged_jobs": {"then": "no"},
        "idle": {"for": "1h1m"},
        "checkpoints": 1,
        "recovery": {"backoff": {"first": 60}},
        "spot": {"fallback": "od"},
        "notifications": {"mail": []},
    }
    assert [error.field for error in errors_of(document)] == [
        "unmanaged_jobs.then",
        "idle.for",
        "checkpoints",
        "recovery.backoff.first",
        "spot.fallback",
        "notifications.mail",
    ]


def test_addresses_are_said_to_need_a_subscription() -> None:
    (warning,) = parse_policy({"notifications": {"email": ["a@example.com", "b@example.com"]}}).warnings
    assert warning.field == "notifications.email"
    assert "subscribed" in warning.message
    assert "aws sns subscribe" in warning.hint
    assert parse_policy({"notifications": {"email": []}}).warnings == ()
