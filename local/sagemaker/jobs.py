"""A training job as SageMaker knows it, and the steps it can take."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from local.sagemaker.metric_definitions import Emitted
from local.sagemaker.s3_uri import S3Location
from local.sagemaker.spec import InstanceGroup, TrainingSpec
from local.sagemaker.statuses import FINAL, MESSAGES, TRANSITIONS, Primary, Secondary, primary_of
from local.sagemaker.warm_pools import (
    IN_USE,
    TERMINATED,
    WarmKey,
    WarmPool,
    keeps_hosts,
    left_behind,
    warm_key,
)

_SPOT_BILLABLE_SHARE = 0.3
"""Share of its time that managed spot training is billed; AWS speaks of savings of up to 90 percent."""

_UNBILLED = frozenset({Secondary.INTERRUPTED, Secondary.RESTARTING})

FAILURE_REASON_CHARACTERS = 1024
"""Source: SageMaker service model, FailureReason."""


class IllegalStepError(Exception):
    """The job's status does not lead to this one."""

    def __init__(self, *, name: str, old: Secondary, new: Secondary) -> None:
        super().__init__(f"training job {name} cannot go from {old} to {new}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    status: Secondary
    start: datetime
    end: datetime | None = None

    @property
    def message(self) -> str:
        return MESSAGES[self.status]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingJob:
    name: str
    arn: str
    created_by: str
    """ARN of the principal that called CreateTrainingJob."""
    created_at: datetime
    modified_at: datetime
    request: Mapping[str, Any]
    """The request as accepted."""
    spec: TrainingSpec
    tags: Mapping[str, str]
    transitions: tuple[Transition, ...]
    primary: Primary = Primary.IN_PROGRESS
    started_at: datetime | None = None
    """When it got its instances."""
    ended_at: datetime | None = None
    failure_reason: str | None = None
    allotted: tuple[InstanceGroup, ...] = ()
    """The instances it launches on, of those it may run on; empty before that."""
    block_end: datetime | None = None
    """End of the window of its training plan in which it has, or last had, instances; None without a plan."""
    final_metrics: tuple[Emitted, ...] = ()
    """The last value of each metric that it printed; none before its end."""
    warm_pool: WarmPool | None = None
    """Taken from another job, or left behind."""

    @property
    def secondary(self) -> Secondary:
        return self.transitions[-1].status

    @property
    def is_final(self) -> bool:
        return self.secondary in FINAL

    def moved_to(self, status: Secondary, now: datetime) -> "TrainingJob":
        """Return the job after one step; a repeated step changes nothing. Raises ``IllegalStepError``."""
        if status is self.secondary:
            return self
        if status not in TRANSITIONS[self.secondary]:
            raise IllegalStepError(name=self.name, old=self.secondary, new=status)
        is_end = status in FINAL
        *before, last = self.transitions
        step = Transition(status=status, start=now, end=now if is_end else None)
        has_instances = status is Secondary.DOWNLOADING and self.started_at is None
        return replace(
            self,
            primary=primary_of(status, before=self.primary),
            modified_at=now,
            transitions=(*before, replace(last, end=now), step),
            started_at=now if has_instances else self.started_at,
            ended_at=now if is_end else None,
            warm_pool=self._pool_left(now) if is_end else self.warm_pool,
        )

    def failed(self, reason: str, now: datetime) -> "TrainingJob":
        reason = reason[:FAILURE_REASON_CHARACTERS]
        return replace(self, failure_reason=reason).moved_to(Secondary.FAILED, now)

    def on_pool(self) -> "TrainingJob":
        """Return the job as started on the instances of another one."""
        return replace(self, warm_pool=IN_USE)

    @property
    def groups(self) -> tuple[InstanceGroup, ...]:
        """Groups of its instances; empty while it is open which of several choices it will get."""
        return self.spec.clusters[0] if len(self.spec.clusters) == 1 else self.allotted

    @property
    def selected(self) -> InstanceGroup | None:
        """Return the group chosen from InstancePreferences; None until the instances are there."""
        is_choice = "InstancePreferences" in self.request["ResourceConfig"]
        return self.groups[0] if is_choice and self.started_at is not None else None

    @property
    def warm_key(self) -> WarmKey | None:
        """Key that is equal for jobs that can share instances; None if it neither takes nor leaves any."""
        if not self.spec.keep_alive or not self.groups:
            return None
        group = self.groups[0]
        return warm_key(self.request, instance_type=group.instance_type, instance_count=group.count)

    def _pool_left(self, now: datetime) -> WarmPool | None:
        """Return the warm pool that its instances become at the end; None if there is none."""
        had_instances = self.started_at is not None or self.warm_pool is not None
        if self.spec.keep_alive and had_instances and keeps_hosts(self.failure_reason):
            return left_behind(self.spec.keep_alive, now)
        return None if self.warm_pool is None else TERMINATED

    @property
    def model_artifacts(self) -> S3Location:
        """Return where its model goes, which is known from the start."""
        return self.spec.output.child(self.name, "output", self.spec.model_file)

    @property
    def training_seconds(self) -> int | None:
        """Return seconds from instances to end, at least 1; None if it has not ended or had none."""
        if self.started_at is None or self.ended_at is None:
            return None
        return max(1, round((self.ended_at - self.started_at).total_seconds()))

    @property
    def billable_seconds(self) -> int | None:
        training = self.training_seconds
        if training is None:
            return None
        if self.spec.plan_arn is not None:
            return max(1, round(training - self._pending_between_windows.total_seconds()))
        if not self.spec.is_spot:
            return training
        idle = sum(
            (_length(transition) for transition in self.transitions if transition.status in _UNBILLED),
            timedelta(),
        )
        return max(1, round((training - idle.total_seconds()) * _SPOT_BILLABLE_SHARE))

    @property
    def _pending_between_windows(self) -> timedelta:
        """Add up the times without instances after it had some, between windows of its training plan."""
        return sum(
            (
                _length(transition)
                for transition in self.transitions
                if transition.status is Secondary.PENDING
                and self.started_at is not None
                and transition.start > self.started_at
            ),
            timedelta(),
        )


def _length(transition: Transition) -> timedelta:
    return transition.end - transition.start if transition.end is not None else timedelta()
