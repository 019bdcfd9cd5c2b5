"""The sections of the policy that govern jobs while they run."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import ClassVar

from trainmaster.core.jobs.failures import FailureClass
from trainmaster.core.policy.findings import Location
from trainmaster.core.policy.keys import OFF, Keys, Section, key, key_or_off, needed, optional
from trainmaster.core.policy.kinds import (
    Duration,
    Flag,
    ListOf,
    Share,
    Whole,
    Word,
    duration_text,
    list_of,
    plain_text,
)
from trainmaster.core.policy.loss_rule import LossRule
from trainmaster.core.policy.names import JOB_ROLES
from trainmaster.core.policy.notification_policy import Notifications
from trainmaster.core.policy.principals import PrincipalPattern

# An alarm looks back a day at most, and a week where its periods are an hour or longer, and periods are
# whole minutes: CloudWatch API reference, PutMetricAlarm, EvaluationPeriods and Period.
_MINUTE, _SECOND = timedelta(minutes=1), timedelta(seconds=1)
_LONG_PERIOD = timedelta(hours=1)
_ALARM_DAY, _ALARM_WEEK = timedelta(days=1), timedelta(days=7)
# As long as a job may run at most: SageMaker API reference, StoppingCondition.
_LONGEST_RUN = timedelta(days=28)
_RUN = Duration(most=_LONGEST_RUN)
_PERCENT = Whole(least=1, most=100)
_HYPERPARAMETERS_HINT = "write a list of hyperparameters, e.g. [batch_size]"
_HYPERPARAMETERS = list_of(
    # Of 1 to 256 characters: SageMaker API reference, CreateTrainingJob.
    plain_text(r"[\s\S]{1,256}", "is not a hyperparameter's name", _HYPERPARAMETERS_HINT),
    _HYPERPARAMETERS_HINT,
)
_CLASSES = ListOf(
    item=Word(FailureClass, called=("a failure class", "classes")),
    hint="write a list of failure classes, [] for none",
    made=frozenset,
)


class UnmanagedThen(StrEnum):
    """Choices for a training job that bypassed the queue."""

    ALLOW = "allow"
    AUDIT = "audit"
    ADOPT = "adopt"
    STOP = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmanagedJobs(Section):
    then: UnmanagedThen = key(
        Word(UnmanagedThen),
        "audit",
        "`allow`: nothing; `audit`: they are recorded; `adopt`: they are counted and governed from then "
        "on; `stop`: they are stopped.",
    )
    except_principals: tuple[PrincipalPattern, ...] = key(
        JOB_ROLES,
        [],
        "Roles whose training jobs are left alone: the role that a job runs under.",
        example='["arn:aws:iam::111122223333:role/notebooks"]',
    )
    """Only roles can be excepted, because SageMaker does not say who started a training job."""
    except_tuning_jobs: bool = key(
        Flag(), True, "Whether training jobs of hyperparameter tuning are left alone."
    )


class Reaction(StrEnum):
    """Choices for a job whose GPUs are idle, or underused."""

    NOTIFY = "notify"
    STOP = "stop"
    REQUEUE = "requeue"
    """Stop the job and resume it from its checkpoint; its team is not charged a retry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle(Section):
    """The alarm on GPUs that are idle."""

    gpu_below_percent: int = key(
        _PERCENT, 1, "A job is idle when its busiest host uses less than this of one GPU."
    )
    for_: timedelta = key(
        Duration(least=_MINUTE, most=_ALARM_WEEK),
        "15m",
        "How long without interruption; a multiple of `period`, at most `1d` if `period` is under an hour.",
    )
    period: timedelta = key(
        Duration(least=_MINUTE, most=_ALARM_DAY), "5m", "Length of a data point of the alarm; whole minutes."
    )
    then: Reaction = key(
        Word(Reaction),
        "stop",
        "`notify`: the owner is notified; `stop`: the job is stopped; `requeue`: it is stopped and resumes "
        "from its checkpoint. `stop` is the default only where the section `idle` is written.",
    )
    warn_first: timedelta = key(_RUN, "10m", "Time from the warning to the stop.")

    def check(self, at: Location) -> None:
        """Refuse periods that no CloudWatch alarm can have."""
        if not at.is_sound("period", "for"):
            return
        if self.period % _MINUTE:
            at.below("period").refuse("must be whole minutes", "write 1m, 5m or 15m, for example")
        elif self.for_ % self.period:
            message = (
                f"must be a multiple of period, {duration_text(self.period)}: {duration_text(self.for_)}"
            )
            at.below("for").refuse(message, "CloudWatch counts whole periods; change for or period")
        elif self.period < _LONG_PERIOD and self.for_ > _ALARM_DAY:
            message = f"must be at most 1d, not {duration_text(self.for_)}: period is shorter than an hour"
            at.below("for").refuse(message, "lower it, or write a period of 1h or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class Utilization(Section):
    """The alarm on GPUs that are underused."""

    PERIOD: ClassVar[timedelta] = timedelta(minutes=5)
    """Length of one data point of the alarm; ``for_`` is a multiple of it."""

    gpu_below_percent: int = key(
        _PERCENT, 80, "A job is underused when its least busy host uses less than this of one GPU."
    )
    for_: timedelta = key(
        Duration(least=PERIOD, most=_ALARM_DAY), "1h", "How long without interruption; a multiple of `5m`."
    )
    then: Reaction = key(
        Word(Reaction),
        "notify",
        "`notify`: the owner is notified; `stop`: the job is stopped; `requeue`: it is stopped and resumes "
        "from its checkpoint.",
    )
    warn_first: timedelta = key(_RUN, "1h", "Time from the notice to the stop.")

    def check(self, at: Location) -> None:
        if at.is_sound("for") and self.for_ % self.PERIOD:
            message = f"must be a multiple of {duration_text(self.PERIOD)}, not {duration_text(self.for_)}"
            at.below("for").refuse(message, "write 30m or 1h, for example")


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """The alarms that each job gets on its GPUs; None where there is none."""

    idle: Idle | None = None
    utilization: Utilization | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoints(Section):
    max_age: timedelta = key(
        Duration(least=_MINUTE, most=_LONGEST_RUN),
        "2h",
        "The owner is notified when the newest checkpoint is older.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff(Section):
    first: timedelta = key(
        Duration(least=_SECOND, most=_LONGEST_RUN),
        "1m",
        "How long the first retry waits; each later one waits twice as long.",
    )
    max: timedelta = key(
        Duration(least=_SECOND, most=_LONGEST_RUN), "30m", "The longest that one waits; not below `first`."
    )

    def check(self, at: Location) -> None:
        if at.is_sound("first", "max") and self.max < self.first:
            message = f"is longer than max, {duration_text(self.max)}: {duration_text(self.first)}"
            at.below("first").refuse(message, "lower it or raise max")


@dataclass(frozen=True, slots=True, kw_only=True)
class OnOom(Section):
    """Hyperparameters that a retry after running out of GPU memory halves and doubles."""

    batch: tuple[str, ...] = needed(
        _HYPERPARAMETERS,
        "Hyperparameters that a retry after running out of GPU memory halves, e.g. `[batch_size]`.",
        stand_in=(),
        hint="write the hyperparameters to be halved",
    )
    accumulation: tuple[str, ...] = key(
        _HYPERPARAMETERS, [], "Hyperparameters that it doubles, e.g. `[gradient_accumulation_steps]`."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery(Section):
    min_runtime: timedelta = key(
        _RUN,
        "2h",
        "Productive time since the last charged failure that earns a retry; classes `service` and `capacity` "
        "need none.",
    )
    max_retries: int = key(Whole(most=100), 3, "Retries of one job.")
    backoff: Backoff = key(Keys(Backoff), {}, "How long a retry waits.")
    retry_classes: frozenset[FailureClass] = key(
        _CLASSES,
        ["service", "capacity", "hardware", "network"],
        "Failure classes that are retried; `[]` for none.",
    )
    on_oom: OnOom | None = optional(
        Keys(OnOom),
        "What a retry after running out of GPU memory changes, for jobs with the tag `trainmaster:on_oom`.",
    )


class Fallback(StrEnum):
    ON_DEMAND = "on-demand"
    NONE = "none"
    """Spot jobs stay on spot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot(Section):
    max_interruptions: int = key(Whole(most=1000), 3, "A job leaves spot after more interruptions than this.")
    min_progress_ratio: float = key(
        Share(),
        0.5,
        "A job leaves spot when less of its time than this share was training, after an interruption and an "
        "hour. 0: never.",
    )
    count_type: bool = key(
        Flag(), False, "Whether other jobs' interruptions of its instance types count too, within limits."
    )
    max_wait: timedelta = key(
        _RUN,
        "6h",
        "Where the planner makes a job a spot job, its `MaxWaitTimeInSeconds` is its `MaxRuntimeInSeconds` "
        "and this.",
    )
    fallback: Fallback = key(
        Word(Fallback), "on-demand", "Where a job that leaves spot goes; `none`: it stays."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Governing(Section):
    """All sections of this module, with the defaults of an empty document."""

    unmanaged_jobs: UnmanagedJobs = key(Keys(UnmanagedJobs), {}, "Training jobs that bypassed the queue.")
    idle: Idle | None = key_or_off(
        Keys(Idle),
        {"gpu_below_percent": 1, "for": "15m", "period": "5m", "then": "notify"},
        "Jobs whose GPUs are idle. Without this section their owners are notified; with `off` they are not "
        "detected.",
        earlier={3: OFF},
        off=(OFF, False),  # `idle:` above lines that are comments is no word against watching
    )
    utilization: Utilization | None = optional(
        Keys(Utilization), "Jobs whose GPUs are underused. Without this section they are not detected."
    )
    loss: LossRule | None = optional(
        Keys(LossRule), "Jobs whose loss shows that they fail. Without this section no loss is read."
    )
    checkpoints: Checkpoints = key(Keys(Checkpoints), {}, "Checkpoints of running jobs.")
    recovery: Recovery = key(Keys(Recovery), {}, "Which failures are retried, from the last checkpoint.")
    spot: Spot = key(Keys(Spot), {}, "Spot jobs.")
    notifications: Notifications = key(Keys(Notifications), {}, "Who is notified.")

    @property
    def watch(self) -> Watch:
        return Watch(idle=self.idle, utilization=self.utilization)
