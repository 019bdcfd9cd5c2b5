"""The world of the demo of the dashboard and of tests/browser: a twin on a clock moved by hand, two teams."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import boto3
from rich.console import Console
from trainmaster_client.api import ApiClient

from demos.programs.ordered_job import END, FAIL, TRAINS
from demos.stage.evidence import Document, last_lines
from demos.stage.job_requests import GPU_IMAGE, Job
from demos.stage.screen import Screen
from demos.stage.twin_stage import MANUAL, Stage, opened_twin
from local.twin_process import TwinProcess

BIG, SMALL = "ml.p5.48xlarge", "ml.g5.12xlarge"
BIG_CAPACITY, SMALL_CAPACITY, SPOT_CAPACITY = 2, 3, 4
BEGINS = datetime(2026, 11, 24, 5, 54, tzinfo=UTC)
"""When the clock begins: always the same instant, so that pages are like their pictures of another day."""
_HOUR_SECONDS = 3600
_OUT_OF_MEMORY = (
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity "
    "of 22.06 GiB of which 1.10 GiB is free."
)
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


class World(Stage):
    """Gives its people the API as each of them, the twin's control calls and its clock."""

    def __init__(self, twin: TwinProcess, folder: Path) -> None:
        super().__init__(twin, Screen(Console(quiet=True)), folder)
        self.teams = {name: self._as_team(name) for name in TEAMS}

    def add(self, job: WorldJob) -> Document:
        """POST /add-job by somebody of the job's team."""
        return self.teams[job.team].add_job(self.request(job))

    def request(self, job: WorldJob) -> Document:
        """Return a CreateTrainingJob request."""
        wanted = Job(
            name=job.name,
            image=GPU_IMAGE,
            command=self.orders.command(job.name, TRAINS),
            instance_type=job.instance_type,
            instances=job.instances,
            max_runtime_seconds=job.hours * _HOUR_SECONDS,
            is_spot=job.is_spot,
            tags=job.tags,
            priority=job.priority,
        )
        return wanted.request(self.twin.ready)

    def now(self) -> datetime:
        clock: str = self.control("POST", "/clock", advance_seconds=0)["clock"]
        return datetime.fromisoformat(clock)

    def state(self, label: str) -> str:
        """Ask for the state of a job now."""
        return str(self.api.job(label, estimate=False)["state"])

    def training_job(self, name: str) -> str:
        """Return the training job of the last attempt."""
        return str(self.api.job(name, estimate=False)["attempts"][-1]["training_job_name"])

    def wait(self, what: str, holds: Callable[[], object]) -> None:
        """Wait for processes of this machine, while the twin's clock stands still.

        Raises:
            StandstillError: Nothing has changed for minutes.
            TwinEndedError: The twin is gone.
        """
        self.vigil.until(what, holds)

    def until_trains(self, name: str) -> None:
        """Wait until its program has begun: then it can be failed, and has something to lose."""
        training_job = self.training_job(name)
        self.wait(f"{name} prints", lambda: last_lines(self.logs, training_job, count=1))

    def until_prints(self, name: str, text: str) -> None:
        """Wait until the last line that its program has printed has this text."""
        training_job = self.training_job(name)

        def is_printed() -> bool:
            return any(text in line for line in last_lines(self.logs, training_job, count=1))

        self.wait(f"{name} prints {text}", is_printed)

    def end(self, name: str) -> None:
        """Let its containers end, and the plane hear of it."""
        self._leave(name, END)

    def fail(self, name: str) -> None:
        self._leave(name, FAIL, _OUT_OF_MEMORY)

    def environment_of(self, team: str | None) -> dict[str, str]:
        """Return the exports of a member of a team; None gives the admin's."""
        exports = self.twin.environment()
        if team is not None:
            key_id, secret, token = self._keys(team)
            exports |= {"AWS_ACCESS_KEY_ID": key_id, "AWS_SECRET_ACCESS_KEY": secret}
            exports |= {"AWS_SESSION_TOKEN": token}
        return exports

    def _leave(self, name: str, order: str, text: str = "") -> None:
        training_job = self.training_job(name)
        self.orders.give(name, order, text)
        self.wait(f"{name} has ended", lambda: self.described(training_job)["SecondaryStatus"] != "Training")
        self.clock(1)

    def _as_team(self, team: str) -> ApiClient:
        session = boto3.Session(*self._keys(team), region_name=self.twin.ready["region"])
        return ApiClient(self.twin.ready["api_url"], session)

    def _keys(self, team: str) -> tuple[str, str, str]:
        role = f"arn:aws:iam::{self.twin.ready['account_id']}:role/{team}-people"
        keys = self.client("sts").assume_role(RoleArn=role, RoleSessionName="ada")["Credentials"]
        return keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"]


@contextmanager
def running_world(folder: Path) -> Iterator[World]:
    """Run an empty world; its clock begins at ``BEGINS``."""
    options = (*MANUAL, "--start", BEGINS.isoformat())
    with opened_twin(folder, policy={"version": 1, "pools": []}, options=options) as twin:
        world = World(twin, folder)
        world.api.put_policy(policy(twin.ready["account_id"]))
        yield world
