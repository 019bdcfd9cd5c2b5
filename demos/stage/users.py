"""Users' programs at their doors to the queue: a process each, and what it has seen of its job."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from demos.programs.sight import FACTS_VARIABLE
from demos.stage.courses import has_followed
from demos.stage.evidence import Document
from demos.stage.processes import Program


class NothingToSeeError(Exception):
    """A program ended before the scene was over; the checks say which."""


class UserProgram(Program):
    """A door's process.

    Args:
        door: Name of the door.
        title: What is shown of it.
        command: What is run.
        folder: Takes its files.
        env: Variables beside those of this process.
    """

    def __init__(
        self, door: str, title: str, command: Sequence[str | Path], *, folder: Path, env: Mapping[str, str]
    ) -> None:
        self.door, self._facts = door, folder / f"{door}.json"
        own = {FACTS_VARIABLE: str(self._facts), "PYTHONUNBUFFERED": "1"}
        super().__init__(title, command, log=folder / f"{door}.log", env={**env, **own})

    def seen(self) -> Document:
        """Return the statuses it has seen, and at its end by which client; empty before its first look."""
        if not self._facts.exists():
            return {}
        facts: Document = json.loads(self._facts.read_text(encoding="utf-8"))
        return facts

    def has_seen(self, course: Sequence[str]) -> bool:
        """Tell whether it has seen these secondary statuses in order; others may come in between."""
        return has_followed(course, [secondary for _, secondary in self.seen().get("statuses", [])])


def created(records: Iterable[Document], *, of: str = "") -> list[Document]:
    """Return each CreateTrainingJob of the twin's journal, for one job or all, with its caller."""
    return [
        {
            "at": record["at"],
            "training_job": record["params"]["TrainingJobName"],
            "by": record["principal"],
            "status": record["status"],
        }
        for record in records
        if record["kind"] == "call"
        and record["operation"] == "CreateTrainingJob"
        and record["params"]["TrainingJobName"].startswith(of)
    ]
