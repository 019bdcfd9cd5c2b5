"""The six doors: what each program is run with, and why one cannot be tried here."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from demos.doors.programs.sight import FACTS_VARIABLE, REQUEST_VARIABLE
from demos.stage.evidence import Document
from demos.stage.patience import ProgramEndedError
from local.twin_process import end

ROOT = Path(__file__).parents[2]
PROGRAMS = "demos.doors.programs"
AIO, AIRFLOW = ROOT / ".venv-aio/bin/python", ROOT / ".venv-airflow/bin/python"
AWS = ROOT / ".venv-cli/bin/aws"
PACKAGES = ROOT / "tests/clients/javascript/node_modules"
_TRAINMASTER = (sys.executable, "-c", "from trainmaster_client.cli import main; main()")
_STATUS = re.compile(r"(?:InProgress|Stopping|Completed|Failed|Stopped) (\w+)")
_AIRFLOW = {
    "AIRFLOW__CORE__UNIT_TEST_MODE": "True",  # an operator may be executed without a task instance
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__METRICS__TIMER_UNIT_CONSISTENCY": "True",  # else its import warns
    "AIRFLOW_CONN_AWS_DEFAULT": "aws://",  # keys and endpoint as boto3 finds them
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    name: str
    title: str
    command: Sequence[str | Path]
    needs: Path
    """File without which the door cannot be tried."""
    is_gateway: bool = False
    """Whether the program uses the gateway, set by its variable alone."""

    def why_not(self) -> str | None:
        if self.needs.exists():
            return None
        return f"there is no {self.needs.relative_to(ROOT)}: make demo-doors makes it where its tools are"


def _python(python: Path, module: str) -> list[str | Path]:
    return [python, "-m", f"{PROGRAMS}.{module}"]


_OWN = Path(sys.executable)
DOORS = (
    Door(
        name="boto3",
        title="boto3.Session() after install()",
        command=_python(_OWN, "boto3_session"),
        needs=_OWN,
    ),
    Door(
        name="botocore",
        title="botocore's own session after install()",
        command=_python(_OWN, "botocore_session"),
        needs=_OWN,
    ),
    Door(
        name="aiobotocore",
        title="aiobotocore after install()",
        command=_python(AIO, "aiobotocore_session"),
        needs=AIO,
    ),
    Door(
        name="cli",
        title="AWS CLI through the gateway",
        command=[*_python(_OWN, "command_line"), AWS],
        needs=AWS,
        is_gateway=True,
    ),
    Door(
        name="javascript",
        title="SDK for JavaScript v3 through the gateway",
        command=["node", ROOT / "demos/doors/programs/javascript_sdk.cjs"],
        needs=PACKAGES,
        is_gateway=True,
    ),
    Door(
        name="airflow",
        title="Airflow's SageMakerTrainingOperator under trainmaster run",
        command=[AIRFLOW.with_name("trainmaster"), "run", "--", *_python(AIRFLOW, "airflow_operator")],
        needs=AIRFLOW,
    ),
)


class Program:
    """A door's process, which ends with its block."""

    def __init__(self, door: Door, folder: Path, request: Document) -> None:
        self.door = door
        self.job = str(request["TrainingJobName"])
        self._folder = folder / door.name
        self._folder.mkdir()
        self._log, self._facts = self._folder / "log", self._folder / "facts.json"
        self._request = self._folder / "request.json"
        self._request.write_text(json.dumps(request), encoding="utf-8")
        self._log.touch()
        self._process: subprocess.Popen[bytes] | None = None

    @contextmanager
    def running(self, gateway_url: str) -> Iterator[None]:
        own = {
            REQUEST_VARIABLE: str(self._request),
            FACTS_VARIABLE: str(self._facts),
            "PYTHONUNBUFFERED": "1",
        }
        own |= {"NODE_PATH": str(PACKAGES), "AIRFLOW_HOME": str(self._folder), **_AIRFLOW}
        if self.door.is_gateway:
            own |= {"AWS_ENDPOINT_URL_SAGEMAKER": gateway_url, "NO_PROXY": "127.0.0.1"}
        command = list(map(str, self.door.command))
        with self._log.open("wb") as log:
            process = subprocess.Popen(
                command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, env={**os.environ, **own}
            )
        self._process = process
        try:
            yield
        finally:
            end(process)

    @property
    def exit_code(self) -> int | None:
        """Return the exit code; None if the program runs or was not started."""
        return None if self._process is None else self._process.poll()

    def printed_bytes(self) -> int:
        return self._log.stat().st_size

    def statuses(self) -> list[str]:
        """Give the secondary statuses that it has seen so far; it prints each when it is new."""
        return [match[1] for line in self.output() if (match := _STATUS.fullmatch(line))]

    def output(self) -> list[str]:
        return self._log.read_text(encoding="utf-8", errors="replace").splitlines()

    def seen(self) -> Document:
        """Return what the program wrote at its end; empty if it did not get there."""
        facts: Document = json.loads(self._facts.read_text(encoding="utf-8")) if self._facts.exists() else {}
        return facts


@contextmanager
def running_gateway(folder: Path, until: Callable[[str, Callable[[], object]], None]) -> Iterator[str]:
    """Give the URL for ``AWS_ENDPOINT_URL_SAGEMAKER``.

    Args:
        folder: Where its files go.
        until: Waits for what it is given, named first, to be true.
    """
    ready = folder / "gateway.json"
    command = [*_TRAINMASTER, "gateway", "--port", "0", "--ready", str(ready)]
    env = {**os.environ, "XDG_STATE_HOME": str(folder)}
    process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until("the gateway answers", lambda: ready.exists() or process.poll() is not None)
        if process.poll() is not None:
            raise ProgramEndedError(program="the gateway", exit_code=process.returncode)
        yield str(json.loads(ready.read_text(encoding="utf-8"))["endpoint_url"])
    finally:
        end(process)
