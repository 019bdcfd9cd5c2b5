"""TrainingApi and TrainingJobReader: stands still unless a test moves it, knows what is really taken."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from trainmaster.core.errors import (
    InstanceLimitError,
    LauncherRefusedError,
    NameTakenError,
    OutcomeUnknownError,
    StopDeniedError,
    UnavailableError,
)
from trainmaster.core.jobs.instances import Capacity, CapacityType
from trainmaster.core.jobs.observations import (
    TERMINAL_STATUSES,
    Described,
    Listed,
    Observation,
    TrainingInterval,
)
from trainmaster.core.policy.plan_windows import PlanSeen
from trainmaster.core.request.request import Launcher

ARN = "arn:aws:sagemaker:us-east-1:111122223333:training-job/"


@dataclass(slots=True)
class TrainingJob:
    name: str
    request: Mapping[str, Any]
    created: datetime
    status: str = "InProgress"
    secondary: str = "Starting"
    reason: str | None = None
    training_since: datetime | None = None
    ended: datetime | None = None
    stops: int = 0
    selected: str | None = None
    """Of InstancePreferences the type it runs on, once it trains."""
    warm: str | None = None
    """WarmPoolStatus.Status as last changed; see ``warm_at``."""
    kept_until: datetime | None = None
    training_intervals: list[TrainingInterval] = field(default_factory=list)
    """In Training; empty where a test only says since when."""
    interruptions: int = 0

    @property
    def is_live(self) -> bool:
        return self.status not in TERMINAL_STATUSES

    @property
    def is_spot(self) -> bool:
        return bool(self.request.get("EnableManagedSpotTraining", False))

    @property
    def vector(self) -> Counter[Capacity]:
        """Instances it holds while it is live or kept warm."""
        resources = self.request["ResourceConfig"]
        preferences = resources.get("InstancePreferences", ())
        count = resources.get("InstanceCount")
        if preferences:
            (chosen,) = [one for one in preferences if self.selected in (None, one["InstanceType"])][:1]
            return Counter({self._capacity(chosen["InstanceType"]): chosen.get("InstanceCount", count)})
        parts = resources.get("InstanceGroups", [resources])
        return Counter({self._capacity(one["InstanceType"]): one["InstanceCount"] for one in parts})

    def _capacity(self, instance_type: str) -> Capacity:
        return Capacity(instance_type, CapacityType.SPOT if self.is_spot else CapacityType.ON_DEMAND)

    @property
    def keep_alive(self) -> timedelta:
        return timedelta(seconds=self.request["ResourceConfig"].get("KeepAlivePeriodInSeconds", 0))

    @property
    def warm_key(self) -> tuple[Any, ...]:
        """What a job must have in common with it to run on its instances."""
        resources = self.request["ResourceConfig"]
        asked = (resources.get("InstanceType"), resources.get("InstanceCount"))
        return (self.request["RoleArn"], *asked, resources.get("VolumeSizeInGB"))

    def warm_at(self, now: datetime) -> str | None:
        if self.warm == "Available" and self.kept_until is not None and self.kept_until <= now:
            return "Terminated"
        return self.warm

    def retained_by(self, now: datetime) -> timedelta | None:
        """What its warm pool is billed for."""
        if self.ended is None or self.kept_until is None:
            return None
        return min(now, self.kept_until) - self.ended


@dataclass(slots=True)
class MemorySageMaker:
    clock: Callable[[], datetime]
    jobs: dict[str, TrainingJob] = field(default_factory=dict)
    creates: list[str] = field(default_factory=list)
    """Names of training jobs that were created, in order."""
    refuse: list[Exception] = field(default_factory=list)
    """Raised by the next creates, instead of creating."""
    objections: list[Callable[[Mapping[str, Any]], Exception | None]] = field(default_factory=list)
    """Why a request is refused, for as long as it is here."""
    unseen: set[str] = field(default_factory=set)
    """Names that Describe does not find, although they may be there."""
    plans: dict[str, PlanSeen] = field(default_factory=dict)
    """Training plans as SageMaker describes them, by ARN."""
    unlisted: set[str] = field(default_factory=set)
    untagged: set[str] = field(default_factory=set)
    """Names whose tags are not shown (yet)."""
    limits: dict[Capacity, int] = field(default_factory=dict)
    """The account's quotas, warm pools counted; none where it is not named."""
    launchers: dict[str, Launcher | None] = field(default_factory=dict)
    """By whom each was created."""
    untrusting: set[str] = field(default_factory=set)
    """ARNs of launcher roles that cannot be assumed."""
    tried: list[str] = field(default_factory=list)
    """Names of all creates, in order."""
    denies_stops: bool = False
    """Of training jobs without tags of ours."""
    lose_answers: int = 0
    """The next creates happen, but nobody hears of it."""

    # ---- the port

    def create(self, request: Mapping[str, Any], *, launcher: Launcher | None = None) -> str:
        name: str = request["TrainingJobName"]
        self.tried.append(name)
        if launcher and launcher.role_arn in self.untrusting:
            raise LauncherRefusedError(f"the launcher role {launcher.role_arn} cannot be assumed")
        if self.refuse:
            raise self.refuse.pop(0)
        for objection in self.objections:
            if (error := objection(request)) is not None:
                raise error
        if name in self.jobs:
            raise NameTakenError("Training job names must be unique")
        job = TrainingJob(name=name, request=request, created=self.clock())
        self._land_in_warm_pool(job)
        if job.warm is None:
            self._require_quota(job)
        self.jobs[name] = job
        self.creates.append(name)
        self.launchers[name] = launcher
        if self.lose_answers:
            self.lose_answers -= 1
            raise OutcomeUnknownError("SageMaker did not answer")
        return ARN + name

    def describe(self, training_job_name: str) -> Observation | None:
        job = self.jobs.get(training_job_name)
        if job is None or training_job_name in self.unseen:
            return None
        return Observation(
            training_job_name=job.name,
            training_job_arn=ARN + job.name,
            status=job.status,
            secondary_status=job.secondary,
            failure_reason=job.reason,
            created_at=job.created,
            training_since=job.training_since,
            max_pending=_seconds(job.request.get("StoppingCondition", {}).get("MaxPendingTimeInSeconds")),
            ended_at=job.ended,
            selected_type=job.selected,
            warm_status=job.warm_at(self.clock()),
            retained=job.retained_by(self.clock()),
            billable=None if job.ended is None else job.ended - (job.training_since or job.ended),
            interruptions=job.interruptions,
            training_intervals=tuple(job.training_intervals),
        )

    def plan(self, arn: str) -> PlanSeen | None:
        return self.plans.get(arn)

    def described(self, training_job_name: str) -> Described | None:
        seen, job = self.describe(training_job_name), self.jobs.get(training_job_name)
        if seen is None or job is None:
            return None
        request = {name: part for name, part in job.request.items() if name != "Tags"}
        return Described(observation=seen, request=request, created_at=job.created)

    def in_progress(self, *, limit: int) -> tuple[Listed, ...]:
        running = (job for job in self.jobs.values() if job.status == "InProgress")
        newest = sorted(running, key=lambda job: job.created, reverse=True)
        return tuple(Listed(training_job_name=job.name, created_at=job.created) for job in newest[:limit])

    def is_listed(self, training_job_name: str, *, created: datetime) -> bool:
        job = self.jobs.get(training_job_name)
        near = job is not None and abs(job.created - created) <= timedelta(minutes=15)
        return near and training_job_name not in self.unlisted

    def tags(self, training_job_arn: str) -> dict[str, str]:
        job = self.jobs.get(training_job_arn.removeprefix(ARN))
        if job is None:
            raise UnavailableError("ListTags was refused: ResourceNotFound")
        tags = [] if job.name in self.untagged else job.request.get("Tags", [])
        return {tag["Key"]: tag["Value"] for tag in tags}

    def stop(self, training_job_name: str) -> None:
        job = self.jobs.get(training_job_name)
        if job is None or not job.is_live:
            return
        if self.denies_stops and not job.request.get("Tags"):
            raise StopDeniedError("AccessDenied")
        job.status = job.secondary = "Stopping"
        job.stops += 1

    def keep_alive(self, training_job_name: str, period: timedelta) -> bool:
        job = self.jobs.get(training_job_name)
        if job is None or job.ended is None or job.warm_at(self.clock()) != "Available":
            return False
        job.kept_until = max(job.ended + period, self.clock())
        return True

    # ---- what the outside does

    def run_outside(self, request: Mapping[str, Any]) -> None:
        """Somebody starts a training job without us."""
        name: str = request["TrainingJobName"]
        self.jobs[name] = TrainingJob(name=name, request=request, created=self.clock())

    def train(self, name: str) -> None:
        job = self.jobs[name]
        job.secondary, job.training_since = "Training", job.training_since or self.clock()
        job.training_intervals.append(TrainingInterval(since=self.clock(), until=None))
        preferences = job.request["ResourceConfig"].get("InstancePreferences")
        if preferences:
            job.selected = preferences[-1]["InstanceType"]

    def interrupt(self, name: str) -> None:
        """SageMaker takes the spot instances away; ``train`` goes on with others."""
        job = self.jobs[name]
        job.secondary, job.interruptions = "Interrupted", job.interruptions + 1
        job.training_intervals[-1:] = [
            replace(one, until=self.clock()) for one in job.training_intervals[-1:]
        ]

    def end(self, name: str, status: str, secondary: str | None = None, reason: str | None = None) -> None:
        job = self.jobs[name]
        job.status, job.secondary, job.reason, job.ended = status, secondary or status, reason, self.clock()
        had_instances = job.training_since is not None and status != "Failed"
        if job.keep_alive and had_instances:
            job.warm, job.kept_until = "Available", job.ended + job.keep_alive
        elif job.keep_alive:
            job.warm = "Terminated"

    def live(self) -> dict[str, TrainingJob]:
        return {name: job for name, job in self.jobs.items() if job.is_live}

    def kept_warm(self) -> dict[str, TrainingJob]:
        now = self.clock()
        return {name: job for name, job in self.jobs.items() if job.warm_at(now) == "Available"}

    def taken(self) -> Counter[Capacity]:
        """Instances that somebody pays for: of live jobs and of warm pools."""
        counted: Counter[Capacity] = Counter()
        for job in (*self.live().values(), *self.kept_warm().values()):
            counted.update(job.vector)
        return counted

    def _require_quota(self, job: TrainingJob) -> None:
        taken = self.taken()
        for capacity, count in job.vector.items():
            limit = self.limits.get(capacity)
            if limit is not None and taken[capacity] + count > limit:
                raise InstanceLimitError(f"The account-level service limit '{capacity}' is {limit} Instances")

    def _land_in_warm_pool(self, job: TrainingJob) -> None:
        """The first that matches; SageMaker asks nobody which."""
        if not job.keep_alive:
            return
        for pool in self.kept_warm().values():
            if pool.warm_key == job.warm_key:
                pool.warm, pool.kept_until, job.warm = "Reused", self.clock(), "InUse"
                return


def _seconds(count: int | None) -> timedelta | None:
    return None if count is None else timedelta(seconds=count)
