"""The stage of a demo: a twin whose clock the story moves, the API, the screen, and patience.

Nothing here depends on how fast the machine is. The twin's clock stands still between two looks and while a
container that was asked to leave has not left, so its grace is as long as on SageMaker; jobs are held after a
step by a file (``hold_file`` of the training program) until the story lets them on.
"""

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

import boto3
from trainmaster_client.api import ApiClient
from trainmaster_client.errors import ApiFailedError, ApiUnreachableError, NotFoundError

from demos.stage.evidence import Bucket, Document, last_lines
from demos.stage.patience import TwinEndedError
from demos.stage.screen import Screen
from demos.stage.vigil import LOOK_SECONDS, Grace, Vigil
from local.twin_process import TwinProcess, running_twin

MANUAL = ("--clock", "manual")
FINAL = frozenset({"completed", "failed", "stopped"})
_LOOKS_A_LOG = 10
"""Logs are read after so many looks without news: a slow machine has better things to do."""


class Stage:
    """Gives the story its tools: the user's API, jobs by label, the clock, control calls."""

    def __init__(self, twin: TwinProcess, screen: Screen, *, vigil: Vigil | None = None) -> None:
        self.twin, self.screen = twin, screen
        self.api = ApiClient(twin.ready["api_url"], boto3.Session())
        self.bucket = Bucket()
        self.logs = boto3.client("logs")
        self.vigil = vigil or Vigil(twin)
        self.vigil.evidence += [self._states, self._last_lines]
        self.names: dict[str, str] = {}
        """Names of the jobs that are shown, by label."""
        self.views: dict[str, Document] = {}
        """Answers of GET /jobs/{name} at the last look, by label."""
        self._lines: Sequence[str] = ()
        self._looks = 0
        self._grace = Grace()

    def name(self, label: str, job: str) -> None:
        """Show this job from now on, as ``label``."""
        self.names[label] = job
        self.screen.name(job, label)

    def state(self, label: str) -> str:
        return str(self.views[label]["state"]) if label in self.views else "unknown"

    def are(self, states: frozenset[str] | set[str], labels: Sequence[str]) -> bool:
        """Tell whether each of these jobs is in one of these states."""
        return all(self.state(label) in states for label in labels)

    def until(self, what: str, holds: Callable[[], object], *, leaves_by_itself: bool = True) -> None:
        """Let the clock go on until it holds.

        Args:
            what: For the screen and for whoever reads why a demo was given up.
            holds: Looked at after each look at the jobs.
            leaves_by_itself: Containers that were asked to leave have ``GRACE_SECONDS`` of the machine's time
                for it. False: one does not hear SIGTERM, so its grace ends as fast as the clock can go.

        Raises:
            StandstillError: Nothing has changed for minutes.
            TwinEndedError: The twin is gone.
        """
        self.vigil.until(
            what,
            lambda: self.look() and holds(),
            between=lambda: self._tick(waits_for_leavers=leaves_by_itself),
        )
        self.screen.reached = what

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


class Hold:
    """A file that tells a training how far it may go (option ``hold_file``)."""

    def __init__(self, folder: Path, label: str) -> None:
        self.path = folder / f"{label}.hold"

    def at(self, step: int) -> None:
        """Let it train up to this step, and wait there."""
        draft = self.path.with_suffix(".new")
        draft.write_text(str(step), encoding="utf-8")
        draft.replace(self.path)  # whoever reads it reads one number or the other

    def release(self) -> None:
        """Let it train to its end."""
        self.path.unlink(missing_ok=True)


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
