"""What a user has in his hands: the API, boto3, the control calls and the clock."""

import json
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
from trainmaster_client.api import ApiClient
from trainmaster_client.errors import NotFoundError, RefusedError

from demos.governance.jobs import DemoJob
from demos.screen import Screen
from local.twin_process import TwinProcess

Document = dict[str, Any]

LONGEST_SECONDS = 60.0
"""For what processes of this machine do beside the clock."""
_LOOK_SECONDS = 0.1


class Stage:
    def __init__(self, twin: TwinProcess, screen: Screen, folder: Path) -> None:
        self.twin = twin
        self.api = ApiClient(twin.ready["api_url"], boto3.Session())
        self.sagemaker = boto3.client("sagemaker")
        self.cloudwatch = boto3.client("cloudwatch")
        self.screen = screen
        self._folder = folder
        self._seen: dict[str, None] = {}
        self._warned: set[str] = set()

    def submit(self, job: DemoJob) -> Document:
        """POST /add-job; what the API has against it, or the job."""
        request = job.request(self.twin.ready, self._orders(job))
        try:
            answer = self.api.add_job(request)
        except RefusedError as error:
            errors = [
                {"field": one.field, "rule": one.rule, "message": one.message} for one in error.problem.errors
            ]
            return {"job": job.name, "status": error.problem.status, "errors": errors}
        self._seen[job.name] = None
        return answer

    def start_plainly(self, job: DemoJob) -> None:
        """CreateTrainingJob, past the queue."""
        self.sagemaker.create_training_job(**job.request(self.twin.ready, self._orders(job)))
        self._seen[job.name] = None

    def order(self, job: DemoJob, what: str) -> None:
        """Leave an order for the containers of a job."""
        (self._orders(job) / what).touch()

    def clock(self, minutes: float) -> None:
        """Move the clock; everything due by then has happened."""
        self.control("POST", "/clock", advance_seconds=60 * minutes)
        self.show()

    def show(self) -> None:
        """News of the jobs, on the screen."""
        views = [view for name in self._seen if (view := self.view(name)) is not None]
        for view in views:
            self._warn(view)
        self.screen.show(self.api.jobs()["jobs"], views)

    def _warn(self, view: Document) -> None:
        last = view["attempts"][-1] if view["attempts"] else {}
        since, due = last.get("idle_since"), last.get("stop_due")
        if since and due and view["name"] not in self._warned:
            self._warned.add(view["name"])
            self.screen.say(f"{since[11:19]}  {view['name']} is idle and will be stopped at {due[11:19]}")

    def view(self, name: str) -> Document | None:
        """GET /jobs/{name}; None while the API knows no such job."""
        try:
            return self.api.job(name, estimate=False)
        except NotFoundError:
            return None

    def state(self, job: DemoJob) -> str | None:
        view = self.view(job.name)
        return None if view is None else str(view["state"])

    def described(self, name: str) -> Document:
        return dict(self.sagemaker.describe_training_job(TrainingJobName=name))

    def control(self, method: str, path: str, **fields: object) -> Document:
        """A control call of the twin."""
        url = f"{self.twin.ready['control_url']}{path}"
        body, headers = json.dumps(fields).encode(), {"content-type": "application/json"}
        request = urllib.request.Request(url, body, headers, method=method)  # noqa: S310  the twin's own address
        with urllib.request.urlopen(request) as answer:  # noqa: S310
            found: Document = json.loads(answer.read())
        return found

    def until(self, what: str, holds: Callable[[], object]) -> None:
        """Wait for processes of this machine, while the twin's clock stands still."""
        deadline = time.monotonic() + LONGEST_SECONDS
        while not holds():
            if time.monotonic() > deadline:
                raise RuntimeError(f"not after {LONGEST_SECONDS:.0f} s: {what}")
            time.sleep(_LOOK_SECONDS)

    def _orders(self, job: DemoJob) -> Path:
        folder = self._folder / "orders" / job.name
        folder.mkdir(parents=True, exist_ok=True)
        return folder
