"""Runs a script under the launcher, with a folder that stands for /opt/ml."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import training

PROGRAM = Path(training.__file__).parent
_SECONDS = 400.0


@dataclass(frozen=True, kw_only=True)
class Ended:
    code: int
    lines: list[str]
    errors: str


@dataclass(kw_only=True)
class Host:
    """One host of a job: ``base`` is its /opt/ml."""

    base: Path
    env: dict[str, str] = field(default_factory=dict)

    @classmethod
    def with_script(cls, base: Path, script: str, **env: str) -> "Host":
        """The script as train.py, and nothing beside it but the launcher."""
        host = cls(base=base, env={"LAUNCH_STOP_SECONDS": "20", "OMP_NUM_THREADS": "1", **env})
        host.code.mkdir(parents=True)
        shutil.copy(PROGRAM / "launch.py", host.code)
        (host.code / "train.py").write_text(script)
        for folder in ("input/config", "output", "checkpoints", "model"):
            (base / folder).mkdir(parents=True)
        return host

    @classmethod
    def with_program(cls, base: Path, **env: str) -> "Host":
        """The real training program."""
        host = cls.with_script(base, "", **env)
        shutil.rmtree(host.code)
        shutil.copytree(PROGRAM, host.code, ignore=shutil.ignore_patterns("__pycache__"))
        return host

    @property
    def code(self) -> Path:
        return self.base / "code"

    @property
    def failure(self) -> str:
        return (self.base / "output/failure").read_text()

    @property
    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.base / "checkpoints/status.json").read_bytes())
        return found

    def tell(self, name: str, content: object) -> None:
        """A file of /opt/ml/input/config."""
        (self.base / f"input/config/{name}.json").write_text(json.dumps(content))

    def start(self, *command: str) -> "subprocess.Popen[str]":
        """Begin; ``command`` instead of the launcher itself."""
        return subprocess.Popen(
            command or [sys.executable, str(self.code / "launch.py")],
            env={
                **{name: text for name, text in os.environ.items() if not name.startswith("PYTHON")},
                "SAGEMAKER_BASE_DIR": str(self.base),
                "SM_MASTER_PORT": free_port(),
                **self.env,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self) -> Ended:
        return ended(self.start())

    def stop_at(self, words: str, *, times: int = 1, number: signal.Signals = signal.SIGTERM) -> Ended:
        """Send the signal when a line with these words was seen so many times."""
        process = self.start()
        lines = lines_until(process, words, times=times)
        process.send_signal(number)
        rest = ended(process)
        return Ended(code=rest.code, lines=lines + rest.lines, errors=rest.errors)


def free_port() -> str:
    """The launcher's own is the same in every container, and here they share a machine."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return str(probe.getsockname()[1])


def lines_until(process: "subprocess.Popen[str]", words: str, *, times: int = 1) -> list[str]:
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line.rstrip())
        times -= words in line
        if not times:
            break
    return lines


def ended(process: "subprocess.Popen[str]") -> Ended:
    try:
        out, errors = process.communicate(timeout=_SECONDS)
    finally:
        process.kill()
    return Ended(code=process.returncode, lines=out.splitlines(), errors=errors)
