"""The world of the demo and of tests/browser: a twin on a clock moved by hand, two teams, their requests."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
from trainmaster_client.api import ApiClient

from demos.dashboard import container
from demos.stage.evidence import last_lines
from demos.stage.twin_stage import control, opened_twin
from demos.stage.vigil import Vigil
from local.twin_process import TwinProcess

Document = dict[str, Any]

BIG, SMALL = "ml.p5.48xlarge", "ml.g5.12xlarge"
BIG_CAPACITY, SMALL_CAPACITY, SPOT_CAPACITY = 2, 3, 4
IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.8.0-gpu-py312"
NIGHT = timedelta(minutes=65)
"""Time before now at which the clock begins: what is played ends before now."""
_HOUR = 3600
TEAMS: Document = {
    "vision": {"usd_per_month": 2000, "at_limit": "wait"},
    "language": {"usd_per_month": 600, "at_limit": "spot"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldJob:
    name: str
    team: str
    instance_type: str = BIG
    instances: int = 1
    is_spot: bool = False
    priority: int = 1
    hours: int = 4
    """Hours of MaxRuntimeInSeconds."""
    tags: Mapping[str, str] = field(default_factory=lambda: {"model_name": "tiny"})


def policy(account_id: str) -> Document:
    capacity = {"p5": {BIG: BIG_CAPACITY}, "g5": {SMALL: SMALL_CAPACITY}}
    pools: list[Document] = [{"name": name, "capacity": of} for name, of in capacity.items()]
    for pool in pools:
        pool["limits"] = {"max_waiting": 5000, "max_submissions_per_minute": 5000}
    pools[1]["spot_capacity"] = {SMALL: SPOT_CAPACITY}
    pools[1]["warm_pool"] = {"keep_alive": "1h", "retain": "1h", "max_idle": "1h"}
    teams = [
        {
            "name": name,
            "principals": [f"arn:aws:iam::{account_id}:role/{name}-*"],
            "roles": "any",
            "budget": budget,
        }
        for name, budget in TEAMS.items()
    ]
    return {"version": 1, "pools": pools, "teams": teams}


class World:
    """Gives its people the API as each of them, the twin's control calls and its clock."""

    def __init__(self, twin: TwinProcess, folder: Path) -> None:
        self.twin = twin
        self.folder = folder
        self.vigil = Vigil(twin)
        self.admin = ApiClient(twin.ready["api_url"], self._session())
        self.teams = {name: self._as_team(name) for name in TEAMS}

    def submit(self, job: WorldJob) -> Document:
        """POST /add-job by somebody of the job's team."""
        return self.teams[job.team].add_job(self.request(job))

    def order(self, name: str, what: str) -> None:
        """Leave an order for the containers of a job, those to come too."""
        (self._orders(name) / what).touch()

    def clock(self, minutes: float) -> None:
        """Move the clock; everything due by then has happened."""
        self.control("POST", "/clock", advance_seconds=60 * minutes)

    def now(self) -> datetime:
        clock: str = self.control("POST", "/clock", advance_seconds=0)["clock"]
        return datetime.fromisoformat(clock)

    def control(self, method: str, path: str, **fields: object) -> Document:
        """Make a control call of the twin."""
        return control(self.twin, method, path, **fields)

    def state(self, name: str) -> str:
        return str(self.admin.job(name, estimate=False)["state"])

    def training_job(self, name: str) -> str:
        """Return the training job of the last attempt."""
        return str(self.admin.job(name, estimate=False)["attempts"][-1]["training_job_name"])

    def until(self, what: str, holds: Callable[[], object]) -> None:
        """Wait for processes of this machine, while the twin's clock stands still.

        Raises:
            StandstillError: Nothing has changed for minutes.
            TwinEndedError: The twin is gone.
        """
        self.vigil.until(what, holds)

    def until_trains(self, name: str) -> None:
        """Wait until its program has begun: then it can be failed, and has something to lose."""
        logs, training_job = self._client("logs"), self.training_job(name)
        self.until(f"{name} prints", lambda: last_lines(logs, training_job, count=1))

    def end(self, name: str) -> None:
        """Let its containers end, and the plane hear of it."""
        self.order(name, container.END)
        self._until_left_training(name)
        self.clock(1)

    def fail(self, name: str) -> None:
        self.order(name, container.OUT_OF_MEMORY)
        self._until_left_training(name)
        self.clock(1)

    def request(self, job: WorldJob) -> Document:
        """Return a CreateTrainingJob request."""
        resources: Document = {
            "InstanceType": job.instance_type,
            "InstanceCount": job.instances,
            "VolumeSizeInGB": 10,
        }
        stopping = {"MaxRuntimeInSeconds": job.hours * _HOUR}
        if job.is_spot:
            stopping["MaxWaitTimeInSeconds"] = (job.hours + 24) * _HOUR
        tags = {**job.tags, "priority": str(job.priority)}
        return {
            "TrainingJobName": job.name,
            "RoleArn": self.twin.ready["role_arn"],
            "AlgorithmSpecification": {
                "TrainingImage": IMAGE,
                "TrainingInputMode": "File",
                "ContainerEntrypoint": ["python", container.__file__, str(self._orders(job.name))],
            },
            "OutputDataConfig": {"S3OutputPath": f"s3://{self.twin.ready['bucket']}/output"},
            "CheckpointConfig": {"S3Uri": f"s3://{self.twin.ready['bucket']}/checkpoints/{job.name}"},
            "ResourceConfig": resources,
            "StoppingCondition": stopping,
            "EnableManagedSpotTraining": job.is_spot,
            "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
        }

    def environment_of(self, team: str | None) -> dict[str, str]:
        """Return the exports of a member of a team; None gives the admin's."""
        exports = self.twin.environment()
        if team is not None:
            keys = self._keys(team)
            exports |= {
                "AWS_ACCESS_KEY_ID": keys["AccessKeyId"],
                "AWS_SECRET_ACCESS_KEY": keys["SecretAccessKey"],
                "AWS_SESSION_TOKEN": keys["SessionToken"],
            }
        return exports

    def _until_left_training(self, name: str) -> None:
        sagemaker, training_job = self._client("sagemaker"), self.training_job(name)

        def has_left() -> bool:
            described = sagemaker.describe_training_job(TrainingJobName=training_job)
            return bool(described["SecondaryStatus"] != "Training")

        self.until(f"{name} has ended", has_left)

    def _as_team(self, team: str) -> ApiClient:
        keys = self._keys(team)
        session = boto3.Session(
            keys["AccessKeyId"],
            keys["SecretAccessKey"],
            keys["SessionToken"],
            region_name=self.twin.ready["region"],
        )
        return ApiClient(self.twin.ready["api_url"], session)

    def _keys(self, team: str) -> Document:
        sts = self._client("sts")
        role = f"arn:aws:iam::{self.twin.ready['account_id']}:role/{team}-people"
        credentials: Document = sts.assume_role(RoleArn=role, RoleSessionName="ada")["Credentials"]
        return credentials

    def _session(self) -> boto3.Session:
        ready = self.twin.ready
        return boto3.Session(ready["access_key_id"], ready["secret_access_key"], region_name=ready["region"])

    def _client(self, service: str) -> Any:  # noqa: ANN401  boto3 makes its clients at run time
        return self._session().client(service, endpoint_url=self.twin.ready["endpoint_url"])  # type: ignore[call-overload]

    def _orders(self, name: str) -> Path:
        folder = self.folder / "orders" / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder


@contextmanager
def running_world(folder: Path) -> Iterator[World]:
    """Run an empty world; its clock begins some hours ago."""
    start = (datetime.now(UTC) - NIGHT).replace(second=0, microsecond=0)
    options = ("--clock", "manual", "--start", start.isoformat())
    with opened_twin(folder, policy={"version": 1, "pools": []}, options=options) as twin:
        world = World(twin, folder)
        world.admin.put_policy(policy(twin.ready["account_id"]))
        yield world
