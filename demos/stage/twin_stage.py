"""The stage of a demo: a twin whose clock the story moves, the API, the screen, and patience.

Nothing here depends on how fast the machine is. The twin's clock stands still between two looks and while a
container that was asked to leave has not left, so its grace is as long as on SageMaker; jobs are held after a
step by a file (``hold_file`` of the training program) until the story lets them on.
"""

import json
import os
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
from trainmaster_client.api import ApiClient
from trainmaster_client.errors import ApiFailedError, ApiUnreachableError, NotFoundError

from demos.stage.directions import Orders
from demos.stage.evidence import Bucket, Document, last_lines, log_lines
from demos.stage.job_requests import INSTANCE_TYPE, Job, checkpoints
from demos.stage.patience import ProgramEndedError, TwinEndedError
from demos.stage.vigil import LOOK_SECONDS, Grace, Vigil
from local.twin_process import TwinProcess, running_twin

if TYPE_CHECKING:
    from demos.stage.command import Telling
    from demos.stage.processes import Program
    from demos.stage.screen import Screen

MANUAL = ("--clock", "manual")
FINAL = frozenset({"completed", "failed", "stopped"})
_LOOKS_A_LOG = 10
"""Logs are read after so many looks without news: a slow machine has better things to do."""
_MINUTE_SECONDS = 60


class Stage:
    """Gives the story its tools: the user's API, jobs by label, the clock, control calls, orders."""

    def __init__(
        self, twin: TwinProcess, screen: "Screen", folder: Path, *, vigil: Vigil | None = None
    ) -> None:
        self.twin, self.screen, self.folder = twin, screen, folder
        ready = twin.ready
        session = boto3.Session(
            ready["access_key_id"], ready["secret_access_key"], region_name=ready["region"]
        )
        self.session = session
        self.api = ApiClient(ready["api_url"], session)
        self.sagemaker = self.client("sagemaker")
        self.logs = self.client("logs")
        self.bucket = Bucket(self.client("s3"))
        self.orders = Orders(folder)
        self.vigil = vigil or Vigil(twin)
        self.vigil.evidence += [self._states, self._last_lines]
        self.guard: Callable[[], None] = lambda: None
        """Called at each look of ``until``; raises if the story cannot go on."""
        self.names: dict[str, str] = {}
        """Names of the jobs that are shown, by label."""
        self.views: dict[str, Document] = {}
        """Answers of GET /jobs/{name} at the last look, by label."""
        self._lines: Sequence[str] = ()
        self._looks = 0
        self._grace = Grace()

    def client(self, service: str) -> Any:  # noqa: ANN401  boto3 makes its clients at run time
        return self.session.client(service, endpoint_url=self.twin.ready["endpoint_url"])  # type: ignore[call-overload]

    def submit(self, job: Job) -> Document:
        """Submit a job by POST /add-job, and show it from now on."""
        answer = self.api.add_job(job.request(self.twin.ready))
        self.name(job.name, job.name)
        return answer

    def occupy(
        self, name: str, instances: int = 1, *, priority: int = 9, instance_type: str = INSTANCE_TYPE
    ) -> str:
        """Submit a job that keeps its instances until it is cancelled; return its name."""
        job = Job(
            name=name,
            command=["sleep", "infinity"],
            instances=instances,
            priority=priority,
            instance_type=instance_type,
        )
        self.submit(job)
        return name

    def checkpoints(self, name: str) -> str:
        return checkpoints(name, self.twin.ready)

    def name(self, label: str, job: str) -> None:
        """Show this job from now on, as ``label``."""
        self.names[label] = job
        self.screen.name(job, label)

    def state(self, label: str) -> str:
        return str(self.views[label]["state"]) if label in self.views else "unknown"

    def are(self, states: frozenset[str] | set[str], labels: Sequence[str]) -> bool:
        """Tell whether each of these jobs is in one of these states."""
        return all(self.state(label) in states for label in labels)

    def until(
        self,
        what: str,
        holds: Callable[[], object],
        *,
        leaves_by_itself: bool = True,
        moves_clock: bool = True,
    ) -> None:
        """Let the clock go on until it holds.

        Args:
            what: For the screen and for whoever reads why a demo was given up.
            holds: Looked at after each look at the jobs.
            leaves_by_itself: Containers that were asked to leave have ``GRACE_SECONDS`` of the machine's time
                for it. False: one does not hear SIGTERM, so its grace ends as fast as the clock can go.
            moves_clock: False if only processes of this machine are waited for.

        Raises:
            StandstillError: Nothing has changed for minutes.
            TwinEndedError: The twin is gone.
        """

        def looked() -> object:
            if not self.look():
                return False
            self.guard()
            return holds()

        self.vigil.until(
            what,
            looked,
            between=(lambda: self._tick(waits_for_leavers=leaves_by_itself)) if moves_clock else None,
        )
        self.screen.reached = what

    def guard_training(self, jobs: Sequence[str], *, may_fail: Sequence[str] = ()) -> None:
        """Give up with the log of the first of these jobs that is stopped, or fails and may not."""

        def guard() -> None:
            for job in jobs:
                ended_early = {"stopped"} if job in may_fail else {"failed", "stopped"}
                if self.state(job) in ended_early:
                    printed = "\n".join(self.lines(self.attempt(job)))
                    raise ProgramEndedError(program=job, exit_code=None, printed=printed)

        self.guard = guard

    def wait_for(self, what: str, *programs: "Program") -> None:
        """Wait for programs beside the twin, which have the rest of the machine.

        Raises:
            ProgramEndedError: One failed.
        """
        self.vigil.evidence += [program.printed_bytes for program in programs]
        self.vigil.until(what, lambda: all(program.exit_code is not None for program in programs))
        for program in programs:
            program.check()

    def look(self) -> bool:
        """Show what is new of the jobs; False if the API was too slow to answer, as on a busy machine."""
        try:
            views = {label: self.view(name) for label, name in self.names.items()}
            queue = self.api.jobs()["jobs"]
        except (ApiFailedError, ApiUnreachableError):
            return False
        self.views = {label: view for label, view in views.items() if view is not None}
        self.screen.show(queue, list(self.views.values()))
        return True

    def clock(self, minutes: float) -> None:
        """Move the clock; everything due by then has happened."""
        self.control("POST", "/clock", advance_seconds=_MINUTE_SECONDS * minutes)

    def control(self, method: str, path: str, **fields: object) -> Document:
        """Make a control call of the twin."""
        return control(self.twin, method, path, **fields)

    def attempt(self, label: str, number: int = -1) -> str:
        """Name the training job of an attempt; empty before there is one."""
        attempts = self.views[label]["attempts"] if label in self.views else []
        return str(attempts[number]["training_job_name"]) if attempts else ""

    def view(self, name: str) -> Document | None:
        """GET /jobs/{name}; None while the API knows no such job."""
        try:
            return self.api.job(name, estimate=False)
        except NotFoundError:
            return None

    def lines(self, training_job: str) -> list[str]:
        """Return what a training job has printed; nothing for an empty name."""
        return log_lines(self.logs, training_job) if training_job else []

    def attempts(self, job: str, read: Callable[[list[str]], Document]) -> list[Document]:
        """Return each attempt of a job with its end, and what ``read`` makes of its log.

        ``exit_code`` is that of all its hosts, or a list if they ended in different ways.
        """
        codes: dict[str, set[int]] = {}
        for record in self.twin.records():
            if record["kind"] == "process" and record["event"] == "exit":
                codes.setdefault(record["training_job"], set()).add(record["exit_code"])
        attempts = []
        for attempt in self.api.job(job)["attempts"]:
            name = attempt["training_job_name"]
            ends = sorted(codes.get(name, ()))
            exit_code = ends if len(ends) > 1 else next(iter(ends), None)
            own = {"training_job_name": name, "status": attempt["status"], "exit_code": exit_code}
            attempts.append(own | read(self.lines(name)))
        return attempts

    def described(self, training_job: str) -> Document:
        return dict(self.sagemaker.describe_training_job(TrainingJobName=training_job))

    def _states(self) -> object:
        return {label: (view["state"], view["history"]) for label, view in self.views.items()}

    def _last_lines(self) -> Sequence[str]:
        self._looks += 1
        if self._looks % _LOOKS_A_LOG == 0:
            names = filter(None, map(self.attempt, self.views))
            self._lines = [line for name in names for line in last_lines(self.logs, name, count=1)]
        return self._lines

    def _tick(self, *, waits_for_leavers: bool) -> None:
        if not self._grace.may_go_on(self.vigil.journal.leaving) and waits_for_leavers:
            return
        try:
            self.control("POST", "/clock", advance_seconds=LOOK_SECONDS)
        except urllib.error.HTTPError as error:
            if error.code < HTTPStatus.INTERNAL_SERVER_ERROR:
                raise
            # What the clock set off is not done yet: the next look comes to the same place.


def control(twin: TwinProcess, method: str, path: str, **fields: object) -> Document:
    """Make a control call and return its answer."""
    url = f"{twin.ready['control_url']}{path}"
    headers = {"Content-Type": "application/json"}
    body = json.dumps(fields).encode()
    request = urllib.request.Request(url, data=body, method=method, headers=headers)  # noqa: S310  the twin's own
    with urllib.request.urlopen(request) as answer:  # noqa: S310
        document: Document = json.loads(answer.read())
    return document


@contextmanager
def opened_stage(
    telling: "Telling", policy: dict[str, Any], *, pool: str, folder: Path | None = None
) -> Iterator[Stage]:
    """Set the stage for the block, in a folder that goes with it, and announce its ``pool``.

    This process, and what it starts, then finds the twin by its environment, as a user's does.
    """
    with temporary_folder() as own, opened_twin(folder or own, policy=policy) as twin:
        os.environ.update(twin.environment())
        telling.screen.say(f"The twin is up at {twin.ready['endpoint_url']}: {pool}.")
        yield Stage(twin, telling.screen, folder or own)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="trainmaster-demo-", ignore_cleanup_errors=True) as name:
        yield Path(name)


@contextmanager
def opened_twin(
    folder: Path, *, policy: dict[str, Any], options: Sequence[str] = MANUAL
) -> Iterator[TwinProcess]:
    """Run a twin for the block. An error in it that comes from the twin's end is raised as that.

    Raises:
        TwinEndedError: The twin ended before the block.
    """
    with running_twin(folder, policy=policy, options=options) as twin:
        try:
            yield twin
        except TwinEndedError:
            raise
        except Exception as error:
            code = twin.ended_within(seconds=2.0)
            if code is None:
                raise
            raise TwinEndedError(exit_code=code) from error
