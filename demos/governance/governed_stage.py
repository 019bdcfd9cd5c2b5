"""The stage of a story whose clock moves by minutes and hours; only processes take the machine's time."""

from collections.abc import Callable
from pathlib import Path

import boto3
from trainmaster_client.errors import RefusedError

from demos.stage.evidence import Document
from demos.governance.jobs import DemoJob
from demos.stage.screen import Screen
from demos.stage.twin_stage import Stage
from local.twin_process import TwinProcess


class GovernedStage(Stage):
    def __init__(self, twin: TwinProcess, screen: Screen, folder: Path) -> None:
        super().__init__(twin, screen)
        self.sagemaker = boto3.client("sagemaker")
        self.cloudwatch = boto3.client("cloudwatch")
        self._folder = folder
        self._warned: set[str] = set()

    def submit(self, job: DemoJob) -> Document:
        """Submit a job by POST /add-job; return the job, or what the API has against it."""
        request = job.request(self.twin.ready, self._orders(job))
        try:
            answer = self.api.add_job(request)
        except RefusedError as error:
            errors = [
                {"field": error.field, "rule": error.rule, "message": error.message}
                for error in error.problem.errors
            ]
            return {"job": job.name, "status": error.problem.status, "errors": errors}
        self.name(job.name, job.name)
        return answer

    def start_plainly(self, job: DemoJob) -> None:
        """Start a job by CreateTrainingJob, bypassing the queue."""
        self.sagemaker.create_training_job(**job.request(self.twin.ready, self._orders(job)))
        self.name(job.name, job.name)

    def order(self, job: DemoJob, what: str) -> None:
        """Leave an order for the containers of a job."""
        (self._orders(job) / what).touch()

    def clock(self, minutes: float) -> None:
        """Move the clock; everything due by then has happened."""
        self.control("POST", "/clock", advance_seconds=60 * minutes)
        self.look()

    def look(self) -> bool:
        """Show what is new, and who is about to be stopped."""
        has_looked = super().look()
        for view in self.views.values():
            self._warn(view)
        return has_looked

    def wait_for_processes(self, what: str, holds: Callable[[], object]) -> None:
        """Wait for what processes of this machine do while the twin's clock stands still.

        Raises:
            StandstillError: Nothing has changed for minutes.
            TwinEndedError: The twin is gone.
        """
        self.vigil.until(what, holds)
        self.screen.reached = what

    def state(self, label: str) -> str:
        """Ask for the state of a job now."""
        view = self.view(label)
        return "unknown" if view is None else str(view["state"])

    def described(self, name: str) -> Document:
        return dict(self.sagemaker.describe_training_job(TrainingJobName=name))

    def _warn(self, view: Document) -> None:
        last = view["attempts"][-1] if view["attempts"] else {}
        since, due = last.get("idle_since"), last.get("stop_due")
        if since and due and view["name"] not in self._warned:
            self._warned.add(view["name"])
            self.screen.say(f"{since[11:19]}  {view['name']} is idle and will be stopped at {due[11:19]}")

    def _orders(self, job: DemoJob) -> Path:
        folder = self._folder / "orders" / job.name
        folder.mkdir(parents=True, exist_ok=True)
        return folder
