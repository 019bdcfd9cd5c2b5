"""The sections of the document that govern jobs while they run."""

import re
from collections.abc import Iterator
from datetime import timedelta

from trainmaster.core.jobs.failures import FailureClass
from trainmaster.core.policy.governing import (
    Backoff,
    Checkpoints,
    Governing,
    Idle,
    Notifications,
    OnOom,
    Recovery,
    Spot,
    UnmanagedJobs,
    Utilization,
)
from trainmaster.core.policy.names import principals_of
from trainmaster.core.policy.principals import PrincipalKind, PrincipalPattern
from trainmaster.core.policy.section import Section, duration_text, nearest, shown

# An alarm looks back a day at most, and a week where its periods are an hour or longer, and periods are
# whole minutes: CloudWatch API reference, PutMetricAlarm, EvaluationPeriods and Period.
_MINUTE = timedelta(minutes=1)
_LONG_PERIOD = timedelta(hours=1)
_ALARM_DAY, _ALARM_WEEK = timedelta(days=1), timedelta(days=7)
# As long as a job may run at most: SageMaker API reference, StoppingCondition.
_LONGEST_RUN = timedelta(days=28)
_MOST_RETRIES = 100
_MOST_INTERRUPTIONS = 1000
_HUNDRED = 100
_MAX_KEY = 256  # of a hyperparameter: SageMaker API reference, CreateTrainingJob
_EMAIL = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}")
_SUBSCRIBE = "aws sns subscribe --protocol email --topic-arn <mail topic> --notification-endpoint <address>"


def governing_of(root: Section) -> Governing:
    return Governing(
        unmanaged_jobs=_unmanaged_jobs(root.section("unmanaged_jobs")),
        idle=None if root.value("idle") is None else _idle(root.section("idle")),
        utilization=None if root.value("utilization") is None else _utilization(root.section("utilization")),
        checkpoints=_checkpoints(root.section("checkpoints")),
        recovery=_recovery(root.section("recovery")),
        spot=_spot(root.section("spot")),
        notifications=_notifications(root.section("notifications")),
    )


def _unmanaged_jobs(section: Section) -> UnmanagedJobs:
    default = UnmanagedJobs()
    unmanaged = UnmanagedJobs(
        then=section.choice("then", default.then),
        except_principals=tuple(_roles(section, "except_principals")),
        except_tuning_jobs=section.boolean("except_tuning_jobs", default=default.except_tuning_jobs),
    )
    section.refuse_unknown()
    return unmanaged


def _roles(section: Section, key: str) -> Iterator[PrincipalPattern]:
    for path, principal in principals_of(section, key):
        if principal.kind is PrincipalKind.ROLE:
            yield principal
        else:
            message = "is a user: a training job tells the role that it runs under, not who started it"
            section.findings.refuse(path, message, "write the role, arn:aws:iam::111122223333:role/NAME")


def _idle(section: Section) -> Idle:
    default = Idle()
    idle = Idle(
        gpu_below_percent=section.integer(
            "gpu_below_percent", default=default.gpu_below_percent, least=1, most=_HUNDRED
        ),
        for_=section.duration("for", default=default.for_, least=_MINUTE, most=_ALARM_WEEK),
        period=section.duration("period", default=default.period, least=_MINUTE, most=_ALARM_DAY),
        then=section.choice("then", default.then),
        warn_first=section.duration("warn_first", default=default.warn_first, most=_LONGEST_RUN),
    )
    section.refuse_unknown()
    _refuse_what_no_alarm_can(idle, section)
    return idle


def _refuse_what_no_alarm_can(idle: Idle, section: Section) -> None:
    findings = section.findings
    if idle.period < _MINUTE:
        return  # refused already
    if idle.period % _MINUTE:
        findings.refuse(section.at("period"), "must be whole minutes", "write 1m, 5m or 15m, for example")
    elif idle.for_ % idle.period:
        message = f"must be a multiple of period, {duration_text(idle.period)}: {duration_text(idle.for_)}"
        findings.refuse(section.at("for"), message, "CloudWatch counts whole periods; change for or period")
    elif idle.period < _LONG_PERIOD and idle.for_ > _ALARM_DAY:
        message = f"must be at most 1d, not {duration_text(idle.for_)}: period is shorter than an hour"
        findings.refuse(section.at("for"), message, "lower it, or write a period of 1h or more")


def _utilization(section: Section) -> Utilization:
    default, period = Utilization(), Utilization.PERIOD
    utilization = Utilization(
        gpu_below_percent=section.integer(
            "gpu_below_percent", default=default.gpu_below_percent, least=1, most=_HUNDRED
        ),
        for_=section.duration("for", default=default.for_, least=period, most=_ALARM_DAY),
        then=section.choice("then", default.then),
    )
    section.refuse_unknown()
    if utilization.for_ % period:
        message = f"must be a multiple of {duration_text(period)}, not {duration_text(utilization.for_)}"
        section.findings.refuse(section.at("for"), message, "write 30m or 1h, for example")
    return utilization


def _checkpoints(section: Section) -> Checkpoints:
    checkpoints = Checkpoints(
        max_age=section.duration("max_age", default=Checkpoints().max_age, least=_MINUTE, most=_LONGEST_RUN)
    )
    section.refuse_unknown()
    return checkpoints


def _recovery(section: Section) -> Recovery:
    default = Recovery()
    recovery = Recovery(
        min_runtime=section.duration("min_runtime", default=default.min_runtime, most=_LONGEST_RUN),
        max_retries=section.integer("max_retries", default=default.max_retries, most=_MOST_RETRIES),
        backoff=_backoff(section.section("backoff")),
        retry_classes=_classes(section, "retry_classes"),
        on_oom=None if section.value("on_oom") is None else _on_oom(section.section("on_oom")),
    )
    section.refuse_unknown()
    return recovery


def _backoff(section: Section) -> Backoff:
    default, second = Backoff(), timedelta(seconds=1)
    backoff = Backoff(
        first=section.duration("first", default=default.first, least=second, most=_LONGEST_RUN),
        max=section.duration("max", default=default.max, least=second, most=_LONGEST_RUN),
    )
    section.refuse_unknown()
    if second <= backoff.max < backoff.first:
        message = f"is longer than max, {duration_text(backoff.max)}: {duration_text(backoff.first)}"
        section.findings.refuse(section.at("first"), message, "lower it or raise max")
    return backoff


def _classes(section: Section, key: str) -> frozenset[FailureClass]:
    if section.value(key) is None:
        return Recovery().retry_classes
    return frozenset(_each_class(section, key))


def _each_class(section: Section, key: str) -> Iterator[FailureClass]:
    for path, value in section.items(key, "write a list of failure classes, [] for none"):
        if isinstance(value, str) and value in list(FailureClass):
            yield FailureClass(value)
        else:
            near = nearest(value, FailureClass) if isinstance(value, str) else None
            known = f"classes: {', '.join(FailureClass)}"
            section.findings.refuse(path, f"is not a failure class: {shown(value)}", near or known)


def _on_oom(section: Section) -> OnOom:
    on_oom = OnOom(
        batch=tuple(_hyperparameters(section, "batch")),
        accumulation=tuple(_hyperparameters(section, "accumulation")),
    )
    section.refuse_unknown()
    if not on_oom.batch and section.value("batch") is None:
        section.findings.refuse(section.at("batch"), "is missing", "write the hyperparameters to be halved")
    return on_oom


def _hyperparameters(section: Section, key: str) -> Iterator[str]:
    hint = "write a list of hyperparameters, e.g. [batch_size]"
    for path, value in section.items(key, hint):
        if isinstance(value, str) and 0 < len(value) <= _MAX_KEY:
            yield value
        else:
            section.findings.refuse(path, f"is not a hyperparameter's name: {shown(value)}", hint)


def _spot(section: Section) -> Spot:
    default = Spot()
    spot = Spot(
        max_interruptions=section.integer(
            "max_interruptions", default=default.max_interruptions, most=_MOST_INTERRUPTIONS
        ),
        min_progress_ratio=section.share("min_progress_ratio", default=default.min_progress_ratio),
        max_wait=section.duration("max_wait", default=default.max_wait, most=_LONGEST_RUN),
        fallback=section.choice("fallback", default.fallback),
    )
    section.refuse_unknown()
    return spot


def _notifications(section: Section) -> Notifications:
    notifications = Notifications(
        email=tuple(_addresses(section, "email")),
        events=section.boolean("events", default=Notifications().events),
    )
    section.refuse_unknown()
    if notifications.email:
        message = "each address must be subscribed to the mail topic once and confirm it; trainmaster cannot"
        section.findings.warn(section.at("email"), message, _SUBSCRIBE)
    return notifications


def _addresses(section: Section, key: str) -> Iterator[str]:
    hint = "write a list of addresses, e.g. [ml-platform@example.com]"
    for path, value in section.items(key, hint):
        if isinstance(value, str) and _EMAIL.fullmatch(value):
            yield value
        else:
            section.findings.refuse(path, f"is not an e-mail address: {shown(value)}", hint)
