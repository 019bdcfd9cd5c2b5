"""SageMaker in virtual time: jobs that start, train and end by themselves, with the limits of a world."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from random import Random
from typing import Any

from local.wire import AwsError
from local.worlds import Rates, World, capacity_type, deliveries, refusal
from tests.integration.sagemaker_stub import ARN, SageMakerStub
from tests.worlds.timeline import Timeline

START_UP_SECONDS = 30.0
"""From Create to Training."""
STOPPING_SECONDS = 10.0
UPLOADING_SECONDS = 5.0
"""At the end of a job's run."""
THROTTLED = "ThrottlingException"
_INSTANTS = frozenset(
    {"CreationTime", "LastModifiedTime", "TrainingEndTime", "TrainingStartTime", "StartTime", "EndTime"}
)
_OF_ONE_JOB = frozenset({"DescribeTrainingJob", "StopTrainingJob", "UpdateTrainingJob"})


@dataclass(slots=True)
class SageMaker:
    timeline: Timeline
    world: World
    draw: Random
    clock: Callable[[], datetime]
    tell: Callable[[dict[str, Any]], None]
    """Gets each state-change event as it is delivered."""
    run_seconds: dict[str, float] = field(default_factory=dict)
    """By the job that a training job was started for; one that is not here trains until somebody stops it."""
    started_at: dict[str, float] = field(default_factory=dict)
    """Instant of each accepted Create."""
    trains_at: dict[str, float] = field(default_factory=dict)
    looked_at: dict[str, list[float]] = field(default_factory=dict)
    """Instants at which each training job was described."""
    denials: int = 0
    """Creates that were denied."""
    plan_windows: Sequence[tuple[float, float]] = ()
    """Instants between which training plans have instances; their jobs are pending in between."""
    stub: SageMakerStub = field(init=False)
    _denied_until: float = 0.0
    _rates: Rates = field(default_factory=Rates)

    def __post_init__(self) -> None:
        self.stub = SageMakerStub(clock=self.clock)

    # ---- the API

    def admit(self, operation: str) -> None:
        """Raises AwsError where the account calls this operation too often."""
        if not self._rates.take(operation, self.world.rates, self.clock()):
            raise AwsError(THROTTLED, "Rate exceeded")

    def deny(self, *, seconds: float) -> None:
        """For so long nobody has the right to create a training job."""
        self._denied_until = self.timeline.now + seconds

    def call(self, operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Raises AwsError."""
        if operation == "CreateTrainingJob":
            self._admit(params)
        if operation in _OF_ONE_JOB and self._is_unread(params["TrainingJobName"]):
            raise AwsError("ValidationException", "Requested resource not found.")
        if operation == "ListTrainingJobs":
            return self._listed(params)
        answer = self._asked(operation, params)
        self._happened(operation, params)
        return answer

    def _admit(self, request: Mapping[str, Any]) -> None:
        if request["TrainingJobName"] in self.stub.jobs:
            return  # the stub refuses it
        if self.timeline.now < self._denied_until:
            self.denials += 1
            raise AwsError("AccessDeniedException", "not authorized to perform: sagemaker:CreateTrainingJob")
        refused = refusal(self.world, request, self._used())
        if refused is not None:
            raise AwsError(refused.code, refused.message)

    def _used(self) -> Counter[tuple[str, str]]:
        used: Counter[tuple[str, str]] = Counter()
        for job in self.stub.live().values():
            for name, count in job.instances().items():
                used[capacity_type(job.request), name.removesuffix(":spot")] += count
        return used

    def _is_unread(self, name: str) -> bool:
        since = self.started_at.get(name)
        return since is not None and self.timeline.now < since + self.world.read_delay_seconds

    def _asked(self, operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        response = self.stub.answer(operation, json.dumps(params).encode())
        body: dict[str, Any] = json.loads(response.body)
        if response.status != HTTPStatus.OK:
            raise AwsError(body["__type"], body["message"], status=response.status)
        answer: dict[str, Any] = _with_instants(body)
        return answer

    def _listed(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """A page is cut before it is filtered, as in the real service; the newest first."""
        newest = [name for name in reversed(self.stub.creates) if not self._is_unread(name)]
        first, size = int(params.get("NextToken", 0)), params.get("MaxResults", 10)
        shown = [
            {
                "TrainingJobName": name,
                "TrainingJobArn": ARN + name,
                "CreationTime": self.stub.jobs[name].created,
                "TrainingJobStatus": self.stub.jobs[name].status,
            }
            for name in newest[first : first + size]
            if params.get("StatusEquals") in {None, self.stub.jobs[name].status}
            and params.get("NameContains", "") in name
        ]
        more = {"NextToken": str(first + size)} if first + size < len(newest) else {}
        return {"TrainingJobSummaries": shown, **more}

    def _happened(self, operation: str, params: Mapping[str, Any]) -> None:
        name = params.get("TrainingJobName", "")
        match operation:
            case "CreateTrainingJob":
                self.started_at[name] = self.timeline.now
                self._steps(name, "Starting")
                begins = self._has_instances_at(params)
                self.timeline.at(begins + START_UP_SECONDS / 2, lambda: self._steps(name, "Downloading"))
                self.timeline.at(begins + START_UP_SECONDS, lambda: self._trains(name))
            case "DescribeTrainingJob":
                self.looked_at.setdefault(name, []).append(self.timeline.now)
            case "StopTrainingJob":
                self._tell(name)
                self.timeline.after(STOPPING_SECONDS, lambda: self.end(name, "Stopped"))
            case _:
                pass

    # ---- what happens to a job

    def _trains(self, name: str) -> None:
        job = self.stub.jobs[name]
        if job.status != "InProgress":
            return
        self.stub.train(name)
        self.trains_at[name] = self.timeline.now
        self._tell(name)
        seconds = next((self.run_seconds[one] for one in parts_of(name) if one in self.run_seconds), None)
        if seconds is not None:
            self.ends_after(name, seconds)

    def _has_instances_at(self, request: Mapping[str, Any]) -> float:
        """Return when a job that is created now gets its instances: at once, or as a window opens."""
        now = self.timeline.now
        if "TrainingPlanArn" not in request["ResourceConfig"]:
            return now
        return next(max(now, begin) for begin, end in (*self.plan_windows, (now, now)) if now <= end)

    def _saves(self, name: str) -> None:
        """Shorten what is left of a job that has a checkpoint by the time that it trained."""
        if "CheckpointConfig" in self.stub.jobs[name].request and name in self.trains_at:
            key = next((part for part in parts_of(name) if part in self.run_seconds), None)
            if key is not None:
                self.run_seconds[key] -= self.timeline.now - self.trains_at[name]

    def ends_after(self, name: str, seconds: float) -> None:
        """It completes so much later."""
        self.timeline.after(max(0.0, seconds - UPLOADING_SECONDS), lambda: self._steps(name, "Uploading"))
        self.timeline.after(seconds, lambda: self.end(name, "Completed"))

    def end(self, name: str, status: str) -> None:
        job = self.stub.jobs[name]
        if not job.is_live or (status == "Completed" and job.status == "Stopping"):
            return
        if status == "Stopped":
            self._saves(name)
        self.stub.end(name, status)
        self._tell(name)

    def _steps(self, name: str, secondary: str) -> None:
        job = self.stub.jobs[name]
        if job.status == "InProgress":
            job.secondary = secondary
            self._tell(name)

    # ---- events

    def _tell(self, name: str) -> None:
        job = self.stub.jobs[name]
        detail = {"TrainingJobName": name, "TrainingJobStatus": job.status, "SecondaryStatus": job.secondary}
        for one in deliveries(self.world, self.draw):
            own = {**detail, "Tags": job.tags} if one.has_tags else dict(detail)
            event = {
                "source": "aws.sagemaker",
                "detail-type": "SageMaker Training Job State Change",
                "detail": own,
            }
            self.timeline.after(one.after.total_seconds(), partial(self.tell, event))

    # ---- what is asked about it

    def busy(self) -> int:
        """Instances of jobs that have not ended."""
        return sum(self._used().values())


def parts_of(name: str) -> Iterator[str]:
    """A training job's name, then what is left without its last words: later attempts have more."""
    while name:
        yield name
        name = name.rpartition("-")[0]


def _with_instants(answer: Any) -> Any:
    if isinstance(answer, list):
        return [_with_instants(one) for one in answer]
    if not isinstance(answer, dict):
        return answer
    return {
        name: datetime.fromtimestamp(one, UTC) if name in _INSTANTS else _with_instants(one)
        for name, one in answer.items()
    }
