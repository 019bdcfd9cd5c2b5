"""SageMaker's training API as far as the plane uses it: no network, no processes, no events.

The twin is the faithful one; this one stands still unless a test moves it, which fault tests need.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from trainmaster.core.jobs.instances import Capacity, plan_name

from local.wire import Response
from tests.integration.cloud import json_response, refusal

ARN = "arn:aws:sagemaker:us-east-1:111122223333:training-job/"
TERMINAL = {"Completed", "Failed", "Stopped"}
KEEPS_HOSTS = ("AlgorithmError", "ClientError")
"""Failures after which SageMaker keeps the warm pool; any other may be the fault of the hosts."""


@dataclass(slots=True)
class TrainingJob:
    request: dict[str, Any]
    created: datetime
    status: str = "InProgress"
    secondary: str = "Starting"
    reason: str | None = None
    training_since: datetime | None = None
    transitions: list[dict[str, Any]] = field(default_factory=list)
    """Times in Training and interruptions, the oldest first."""
    ended: datetime | None = None
    stops: int = 0
    selected_type: str | None = None
    """Which of the InstancePreferences SageMaker took."""
    warm_until: datetime | None = None
    """End of the warm pool it left; None: it left none."""
    warm_status: str | None = None
    """Anything but Available stays for good."""
    tuning_job_arn: str | None = None
    """Of the tuning job that made it."""
    metrics: dict[str, float] = field(default_factory=dict)
    """Last value of each metric."""

    @property
    def is_live(self) -> bool:
        return self.status not in TERMINAL

    @property
    def tags(self) -> dict[str, str]:
        return {tag["Key"]: tag["Value"] for tag in self.request.get("Tags", [])}

    def instances(self) -> dict[str, int]:
        """What it takes up: the type SageMaker took, or the first it may take."""
        resources = self.request["ResourceConfig"]
        preferences = resources.get("InstancePreferences", [])
        if not preferences:
            parts = resources.get("InstanceGroups", [resources])
        else:
            parts = [one for one in preferences if one["InstanceType"] == self.selected_type] or [
                preferences[0]
            ]
        counted: dict[str, int] = {}
        for part in parts:
            name = part["InstanceType"] + (":spot" if self.request.get("EnableManagedSpotTraining") else "")
            if plan := resources.get("TrainingPlanArn"):
                name = Capacity.of_plan(name, plan_name(plan))
            count = part.get("InstanceCount", resources.get("InstanceCount"))
            counted[name] = counted.get(name, 0) + count
        return counted


@dataclass(slots=True)
class SageMakerStub:
    clock: Callable[[], datetime]
    jobs: dict[str, TrainingJob] = field(default_factory=dict)
    creates: list[str] = field(default_factory=list)
    """Names of accepted CreateTrainingJob calls, in order."""
    plans: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Answers of DescribeTrainingPlan, by the plan's name."""
    limits: dict[str, int] = field(default_factory=dict)
    """The account's quota by instance type, warm pools counted; none where it is not named."""
    longest_run: int | None = None
    """The account's quota of MaxRuntimeInSeconds; None: any."""
    keeps_released: bool = False
    """A warm pool that is given up stays for a while, as in the real service."""
    keeps_warm: bool = True
    """False: as with a quota of 0 for warm pools."""
    bills_startup: bool = False
    """Instances are billed from the creation on, not from Training on."""
    refuse: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    """(error code, HTTP status) for the next requests of an operation."""
    intercept: dict[str, Callable[[dict[str, Any]], Response]] = field(default_factory=dict)
    """Answers the next request of an operation instead of us."""

    def copy(self) -> "SageMakerStub":
        """Another one in the same state."""
        jobs = {name: replace(job, transitions=list(job.transitions)) for name, job in self.jobs.items()}
        refuse = {operation: list(errors) for operation, errors in self.refuse.items()}
        return replace(self, jobs=jobs, creates=list(self.creates), limits=dict(self.limits), refuse=refuse)

    def answer(self, operation: str, body: bytes) -> Response:
        params = json.loads(body)
        if self.refuse.get(operation):
            code, status = self.refuse[operation].pop(0)
            return refusal(code, f"{operation} was told to fail", status)
        own: Callable[[dict[str, Any]], Response] = getattr(self, f"_{operation}")
        return self.intercept.pop(operation, own)(params)

    def _CreateTrainingJob(self, body: dict[str, Any]) -> Response:
        name = body["TrainingJobName"]
        if name in self.jobs:
            return refusal("ResourceInUse", "Training job names must be unique")
        job = TrainingJob(request=body, created=self.clock())
        taken = self._matching(body)
        for instance_type, limit in self.limits.items():
            wanted = 0 if taken else job.instances().get(instance_type, 0)
            used = self.taken_up().get(instance_type, 0)
            if wanted and used + wanted > limit:
                return above_quota(instance_type, limit, used=used, asked=wanted)
        if self.longest_run and body["StoppingCondition"]["MaxRuntimeInSeconds"] > self.longest_run:
            quota = f"'Longest run time for a training job' is {self.longest_run} Seconds"
            return refusal("ResourceLimitExceeded", f"The account-level service limit {quota}")
        if taken:
            taken.warm_status, taken.warm_until = "InUse", self.clock()
        self.jobs[name] = job
        self.creates.append(name)
        return json_response({"TrainingJobArn": ARN + name})

    def _DescribeTrainingJob(self, body: dict[str, Any]) -> Response:
        job = self.jobs.get(body["TrainingJobName"])
        if job is None:
            return refusal("ValidationException", "Requested resource not found.")
        since = job.created if self.bills_startup else job.training_since
        described = {
            **{name: part for name, part in job.request.items() if name != "Tags"},
            **({"TuningJobArn": job.tuning_job_arn} if job.tuning_job_arn else {}),
            "CreationTime": job.created,
            "TrainingJobName": body["TrainingJobName"],
            "TrainingJobArn": ARN + body["TrainingJobName"],
            "FinalMetricDataList": [
                {"MetricName": name, "Value": value} for name, value in job.metrics.items()
            ],
            "TrainingJobStatus": job.status,
            "SecondaryStatus": job.secondary,
            "SecondaryStatusTransitions": job.transitions,
            "LastModifiedTime": self.clock(),
            "ResourceConfig": job.request["ResourceConfig"],
        }
        if job.selected_type:
            described["ResourceConfig"] = {
                **job.request["ResourceConfig"],
                "SelectedInstanceType": job.selected_type,
            }
        if job.ended:
            described["TrainingEndTime"] = job.ended
            described["BillableTimeInSeconds"] = int((job.ended - (since or job.ended)).total_seconds())
        if job.reason:
            described["FailureReason"] = job.reason
        if status := self._warm_status(job):
            described["WarmPoolStatus"] = {"Status": status, **self._retained(job)}
        return json_response(described)

    def _DescribeTrainingPlan(self, body: dict[str, Any]) -> Response:
        plan = self.plans.get(body["TrainingPlanName"].rpartition("/")[2])
        return refusal("ResourceNotFound", "no such plan") if plan is None else json_response(plan)

    def _ListTrainingJobs(self, body: dict[str, Any]) -> Response:
        """One page, the newest first; as in the real service it is cut before it is filtered."""
        newest = sorted(self.jobs, key=lambda name: self.jobs[name].created, reverse=True)
        page = newest[: body["MaxResults"]]
        shown = [
            {
                "TrainingJobName": name,
                "TrainingJobArn": ARN + name,
                "CreationTime": self.jobs[name].created,
                "TrainingJobStatus": self.jobs[name].status,
            }
            for name in page
            if self.jobs[name].status == body.get("StatusEquals", self.jobs[name].status)
            and body.get("NameContains", "") in name
        ]
        return json_response({"TrainingJobSummaries": shown})

    def _ListTags(self, body: dict[str, Any]) -> Response:
        return json_response(
            {"Tags": self.jobs[body["ResourceArn"].removeprefix(ARN)].request.get("Tags", [])}
        )

    def _StopTrainingJob(self, body: dict[str, Any]) -> Response:
        job = self.jobs.get(body["TrainingJobName"])
        if job is None or job.status in TERMINAL:
            return refusal(
                "ValidationException", "The request was rejected because the training job is over."
            )
        job.status = job.secondary = "Stopping"
        job.stops += 1
        return json_response({})

    def _UpdateTrainingJob(self, body: dict[str, Any]) -> Response:
        job = self.jobs.get(body["TrainingJobName"])
        if job is None or job.ended is None or self._warm_status(job) != "Available":
            return refusal("ValidationException", "The training job has no warm pool that is Available.")
        until = job.ended + timedelta(seconds=body["ResourceConfig"]["KeepAlivePeriodInSeconds"])
        if until > self.clock() or not self.keeps_released:
            job.warm_until = max(until, self.clock())
        return json_response({"TrainingJobArn": ARN + body["TrainingJobName"]})

    # ---- warm pools

    def _warm_status(self, job: TrainingJob) -> str | None:
        if job.warm_until is None or job.warm_status:
            return job.warm_status
        return "Available" if self.clock() < job.warm_until else "Terminated"

    def _retained(self, job: TrainingJob) -> dict[str, int]:
        if job.ended is None or job.warm_until is None:
            return {}
        kept = min(self.clock(), job.warm_until) - job.ended
        return {"ResourceRetainedBillableTimeInSeconds": int(kept.total_seconds())}

    def _matching(self, body: dict[str, Any]) -> TrainingJob | None:
        if body.get("EnableManagedSpotTraining") or not body["ResourceConfig"].get(
            "KeepAlivePeriodInSeconds"
        ):
            return None
        available = (job for job in self.jobs.values() if self._warm_status(job) == "Available")
        return next((job for job in available if _warm_key(job.request) == _warm_key(body)), None)

    def available(self) -> dict[str, TrainingJob]:
        """Training jobs whose warm pool waits for the next one."""
        return {name: job for name, job in self.jobs.items() if self._warm_status(job) == "Available"}

    def taken_up(self) -> dict[str, int]:
        """Instances that run or are kept warm, by type; spot apart."""
        counted: dict[str, int] = {}
        for job in [*self.live().values(), *self.available().values()]:
            for name, count in job.instances().items():
                counted[name] = counted.get(name, 0) + count
        return counted

    # ---- what a test does to a job

    def run_outside(self, request: dict[str, Any], **fields: Any) -> None:
        """Somebody starts a training job without us."""
        self.jobs[request["TrainingJobName"]] = TrainingJob(request=request, created=self.clock(), **fields)

    def train(self, name: str) -> None:
        job = self.jobs[name]
        job.secondary, job.training_since = "Training", job.training_since or self.clock()
        job.transitions.append({"Status": "Training", "StartTime": self.clock()})
        preferences = job.request["ResourceConfig"].get("InstancePreferences")
        if preferences and job.selected_type is None:
            job.selected_type = preferences[-1]["InstanceType"]

    def interrupt(self, name: str) -> None:
        """Its spot instances are taken away; ``train`` goes on with others."""
        job = self.jobs[name]
        job.secondary = "Interrupted"
        job.transitions.append({"Status": "Interrupted", "StartTime": self.clock()})

    def end(self, name: str, status: str, secondary: str | None = None, reason: str | None = None) -> None:
        job = self.jobs[name]
        job.status, job.secondary, job.reason, job.ended = status, secondary or status, reason, self.clock()
        keep = job.request["ResourceConfig"].get("KeepAlivePeriodInSeconds", 0)
        hosts_are_well = reason is None or reason.startswith(KEEPS_HOSTS)
        if (
            keep
            and self.keeps_warm
            and hosts_are_well
            and job.training_since
            and not job.request.get("EnableManagedSpotTraining")
        ):
            job.warm_until = job.ended + timedelta(seconds=keep)

    def live(self) -> dict[str, TrainingJob]:
        return {name: job for name, job in self.jobs.items() if job.is_live}


def _warm_key(request: dict[str, Any]) -> str:
    resources = {
        key: part for key, part in request["ResourceConfig"].items() if key != "KeepAlivePeriodInSeconds"
    }
    return json.dumps([request["RoleArn"], resources, request.get("VpcConfig")], sort_keys=True)


def above_quota(instance_type: str, limit: int, *, used: int, asked: int) -> Response:
    """A refusal for the account's quota of a type, in AWS's words."""
    return refusal(
        "ResourceLimitExceeded",
        f"The account-level service limit '{instance_type} for training job usage' is {limit} Instances, with"
        f" current utilization of {used} Instances and a request delta of {asked} Instances.",
    )
