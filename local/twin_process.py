"""The twin as its user runs it: a process of its own, with a ready file and a journal."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

START_SECONDS = 600.0
"""A start takes about ten CPU seconds; a busy machine may be sixty times slower."""
STOP_SECONDS = 15.0
POLL_SECONDS = 0.05
PROGRAM = (sys.executable, "-m", "local", "up")


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinProcess:
    ready: dict[str, Any]
    journal: Path
    process: subprocess.Popen[bytes] | None = None
    """The twin's process; None if another program runs it."""

    @property
    def exit_code(self) -> int | None:
        """The exit code; None while it runs."""
        return self.process.poll() if self.process is not None else None

    def ended_within(self, *, seconds: float) -> int | None:
        """Wait a moment for its end; the exit code, or None: it still runs."""
        if self.process is not None:
            with suppress(subprocess.TimeoutExpired):
                return self.process.wait(seconds)
        return None

    def environment(self) -> dict[str, str]:
        """Return the variables that ``local up`` tells its user to export."""
        return {
            "AWS_ENDPOINT_URL": self.ready["endpoint_url"],
            "AWS_ACCESS_KEY_ID": self.ready["access_key_id"],
            "AWS_SECRET_ACCESS_KEY": self.ready["secret_access_key"],
            "AWS_DEFAULT_REGION": self.ready["region"],
            "TRAINMASTER_API_URL": self.ready["api_url"],
            "TRAINMASTER_ROLE": self.ready["role_arn"],
            "TRAINMASTER_BUCKET": self.ready["bucket"],
            "SAGEMAKER_USER_CONFIG_OVERRIDE": self.ready["sdk_defaults"],
            "SAGEMAKER_SUPPRESS_V2_WARNING": "1",
        }

    def records(self) -> list[dict[str, Any]]:
        """Return the journal so far."""
        return [json.loads(line) for line in self.journal.read_text(encoding="utf-8").splitlines()]


@contextmanager
def running_twin(
    folder: Path,
    *,
    policy: dict[str, Any],
    options: Sequence[str] = (),
    checkout: Path | None = None,
    program: Sequence[str] = PROGRAM,
) -> Iterator[TwinProcess]:
    """Run a twin on a free port with further options of ``local up``; it ends with the block.

    ``checkout`` is where the project lies whose template is deployed; None: here. ``program`` is what starts
    it, in that folder.
    """
    files = {name: folder / name for name in ("policy.json", "ready.json", "journal.jsonl", "twin.log")}
    files["policy.json"].write_text(json.dumps(policy), encoding="utf-8")
    own = ["--port", "0", "--policy", str(files["policy.json"]), "--ready", str(files["ready.json"])]
    own += ["--journal", str(files["journal.jsonl"])]
    command = [*program, *own, *options]
    with files["twin.log"].open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=checkout)
    try:
        ready = _wait_for(files["ready.json"], process, files["twin.log"])
        yield TwinProcess(ready=ready, journal=files["journal.jsonl"], process=process)
    finally:
        end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process by request, else by force; it is gone on return."""
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _wait_for(ready: Path, process: subprocess.Popen[bytes], log: Path) -> dict[str, Any]:
    deadline = time.monotonic() + START_SECONDS
    while not ready.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(
                f"the twin did not start:\n{log.read_text(encoding='utf-8', errors='replace')}"
            )
        time.sleep(POLL_SECONDS)
    document: dict[str, Any] = json.loads(ready.read_text(encoding="utf-8"))
    return document
