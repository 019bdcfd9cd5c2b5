"""Programs beside the twin: each a process with a log, which ends with its block."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from demos.stage.patience import ProgramEndedError, Progress
from local.twin_process import end

ROOT = Path(__file__).parents[2]
TRAINMASTER = (sys.executable, "-c", "from trainmaster_client.cli import main; main()")
_LOOK_SECONDS = 0.05


class Program:
    """A process whose output goes to a file.

    Args:
        title: Its name in messages.
        command: What is run.
        log: The file that takes what it prints.
        env: Variables beside those of this process.
        cwd: The folder it runs in.
    """

    def __init__(
        self,
        title: str,
        command: Sequence[str | Path],
        *,
        log: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path = ROOT,
    ) -> None:
        self.title, self._log = title, log
        self._command, self._cwd = list(map(str, command)), cwd
        self._env = {**os.environ, **(env or {})}
        self._process: subprocess.Popen[bytes] | None = None
        log.touch()

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command, cwd=self._cwd, env=self._env, stdout=log, stderr=subprocess.STDOUT
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            end(self._process)

    @property
    def exit_code(self) -> int | None:
        """The exit code; None while it runs, or before it was started."""
        return None if self._process is None else self._process.poll()

    def printed_bytes(self) -> int:
        return self._log.stat().st_size

    def lines(self) -> list[str]:
        """Return what it has printed."""
        return self._log.read_text(encoding="utf-8", errors="replace").splitlines()

    def check(self) -> None:
        """Raises ProgramEndedError: it has failed."""
        if self.exit_code:
            raise self.ended()

    def ended(self) -> ProgramEndedError:
        """Return the error that says how it ended, with all that it printed."""
        printed = "\n".join(self.lines())
        return ProgramEndedError(program=self.title, exit_code=self.exit_code, printed=printed)


@contextmanager
def running_server(
    folder: Path, command: str, *options: str, env: Mapping[str, str] | None = None
) -> Iterator[dict[str, Any]]:
    """Run ``trainmaster gateway`` or ``dashboard`` on a free port for the block; give its ready file.

    Raises:
        ProgramEndedError: It did not start.
        StandstillError: It says nothing and does not answer.
    """
    folder.mkdir(parents=True, exist_ok=True)
    ready = folder / f"{command}.json"
    own = [*TRAINMASTER, command, "--port", "0", "--ready", str(ready), *options]
    program = Program(
        f"the {command}",
        own,
        log=folder / f"{command}.log",
        env={**(env or {}), "XDG_STATE_HOME": str(folder)},
    )
    progress = Progress()
    with program:
        while not ready.exists():
            if program.exit_code is not None:
                raise program.ended()
            progress.observe(program.printed_bytes())
            progress.check(f"the {command} answers")
            time.sleep(_LOOK_SECONDS)
        document: dict[str, Any] = json.loads(ready.read_text(encoding="utf-8"))
        yield document
