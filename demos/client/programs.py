"""The users' programs: one process a door, with the environment that the twin tells its users to export."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from demos.client.doors.seeing import FACTS_VARIABLE
from demos.stage.evidence import Document
from demos.stage.twin_stage import Hold
from local.namespace import namespaces_refused
from local.twin_process import TwinProcess, end

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    name: str
    title: str
    module: str
    needs_v3: bool = False


DOORS = (
    Door(name="v2", title="SDK v2: estimator.fit(wait=True)", module="demos.client.doors.sdk_v2"),
    Door(
        name="v3",
        title="SDK v3: ModelTrainer.train(wait=True)",
        module="demos.client.doors.sdk_v3",
        needs_v3=True,
    ),
    Door(
        name="boto3",
        title="boto3: create_training_job, describe_training_job, get_log_events",
        module="demos.client.doors.plain_boto3",
    ),
)


def why_not(door: Door, python_v3: Path) -> str | None:
    """Say why a door cannot be tried here; None if it can."""
    if not door.needs_v3:
        return None
    if not python_v3.exists():
        return f"no SDK v3: there is no {python_v3}; make demo-client makes it"
    refused = namespaces_refused()
    return refused and f"this machine refuses the namespaces that jobs of the SDK v3 need: {refused}"


class Program:
    def __init__(self, door: Door, folder: Path, twin: TwinProcess, python: Path | None) -> None:
        self.door = door
        self.label = f"door-{door.name}"
        self.checkpoints = f"s3://{twin.ready['bucket']}/checkpoints/{self.label}"
        self._log = folder / f"{door.name}.log"
        self._facts = folder / f"{door.name}.json"
        self.hold = Hold(folder, self.label)
        """The order that holds its training."""
        self._command = [str(python or sys.executable), "-m", door.module]
        self._environment = os.environ | {
            "DEMO_LABEL": self.label,
            "DEMO_BUCKET": twin.ready["bucket"],
            "DEMO_ROLE": twin.ready["role_arn"],
            "DEMO_HOLD": str(self.hold.path),
            FACTS_VARIABLE: str(self._facts),
            "PYTHONUNBUFFERED": "1",
        }

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, env=self._environment
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        end(self._process)

    @property
    def is_over(self) -> bool:
        return self._process.poll() is not None

    @property
    def exit_code(self) -> int | None:
        return self._process.poll()

    def output(self) -> str:
        """Return what its user has on the screen."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def printed_bytes(self) -> int:
        return self._log.stat().st_size

    def seen_secondary_statuses(self) -> list[str]:
        """Return what DescribeTrainingJob answered it so far, each status once in a row."""
        return [secondary for _, secondary in self.seen().get("describe_statuses", [])]

    def seen(self) -> Document:
        """Return the statuses it has seen, and at its end the job's name; empty before its first look."""
        if not self._facts.exists():
            return {}
        facts: Document = json.loads(self._facts.read_text(encoding="utf-8"))
        return facts

    def job_among(self, queue: Iterable[Document]) -> str:
        """Return the name the SDK gave its job; empty before it is in the queue."""
        names = (str(job["name"]) for job in queue)
        return next((name for name in names if name.startswith(self.label)), "")
