"""Waits for what happens in a twin, and reads its journal for signs that anything does."""

import json
import time
from collections.abc import Callable, Collection
from http import HTTPStatus
from pathlib import Path

from demos.stage.evidence import Document
from demos.stage.patience import Progress, TwinEndedError
from local.twin_process import TwinProcess

LOOK_SECONDS = 0.5
GRACE_SECONDS = 120.0
"""Seconds of grace as on SageMaker (API reference, StopTrainingJob), in the machine's time: the twin's own
is shorter."""
CHANGING = frozenset(
    {
        "CreateTrainingJob",
        "DeleteAlarms",
        "POST /add-job",
        "Publish",
        "PUT /policy",
        "PutCompositeAlarm",
        "PutEvents",
        "PutMetricAlarm",
        "StopTrainingJob",
        "UpdateTrainingJob",
    }
)
"""Calls that say or do something; the rest of the journal looks, or writes the table."""


Container = tuple[str, str]
"""Training job and host of a container."""


class Journal:
    """The twin's journal, read as it grows."""

    def __init__(self, path: Path) -> None:
        self._path, self._offset = path, 0
        self.changes = 0
        """Events of processes, and calls that changed something."""
        self.leaving: set[Container] = set()
        """Containers that have had their signal, and have not ended yet."""

    def read(self) -> None:
        with self._path.open("rb") as file:
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n"):
                    return  # it is being written
                self._offset += len(line)
                self._note(json.loads(line))

    def _note(self, record: Document) -> None:
        if record["kind"] == "process":
            self.changes += 1
            container = (record["training_job"], record["host"])
            if record["event"] == "signal":
                self.leaving.add(container)
            else:
                self.leaving.discard(container)
        elif record["status"] < HTTPStatus.BAD_REQUEST and _changes(record["operation"] or ""):
            self.changes += 1


def _changes(operation: str) -> bool:
    """Tell calls that say or do something from those that look; REST calls begin with their verb."""
    return operation in CHANGING or operation.partition(" ")[0] in {"POST", "PUT", "PATCH", "DELETE"}


class Grace:
    """Decides whether the twin's clock may go on while containers were asked to leave.

    A busy machine may need a minute for what takes a second elsewhere, and the twin would kill a container
    that is still saving.
    """

    def __init__(
        self, *, seconds: float = GRACE_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._seconds, self._clock = seconds, clock
        self._since: dict[Container, float] = {}

    def may_go_on(self, leaving: Collection[Container]) -> bool:
        """Tell whether each of them has had the machine's time for it; True when none is leaving."""
        now = self._clock()
        self._since = {container: self._since.get(container, now) for container in leaving}
        return all(now - since >= self._seconds for since in self._since.values())


class Vigil:
    """Waits for what happens in a twin, for as long as anything happens in it.

    Args:
        twin: Its process and journal are looked at.
        progress: When to give up.
        pause: Between two looks, in seconds.
    """

    def __init__(
        self,
        twin: TwinProcess,
        *,
        progress: Progress | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._twin, self._pause = twin, pause
        self._progress = progress or Progress()
        self.journal = Journal(twin.journal)
        self.evidence: list[Callable[[], object]] = [lambda: self.journal.changes]
        """Whatever may change while the story goes on; a demo adds what it looks at itself."""

    def until(
        self, what: str, holds: Callable[[], object], *, between: Callable[[], object] | None = None
    ) -> None:
        """Return once it holds; ``between`` is done after each look that it does not.

        Raises:
            StandstillError: Nothing has changed for minutes.
            TwinEndedError: The twin is gone.
        """
        while True:
            self.check_twin()
            self.journal.read()
            if holds():
                return
            if between is not None:
                between()
            self._progress.observe([look() for look in self.evidence])
            self._progress.check(what)
            self._pause(LOOK_SECONDS)

    def check_twin(self) -> None:
        """Raises TwinEndedError."""
        if (code := self._twin.exit_code) is not None:
            raise TwinEndedError(exit_code=code)
