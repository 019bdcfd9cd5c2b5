"""Runs the program as SageMaker's script mode does, and reads what it printed."""

import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import training
from training.metrics import metrics_in

_RESUMED = re.compile(r"resumed from step=(\d+) file=(\S+) sha256=(\S+)")


@dataclass(frozen=True, kw_only=True)
class Attempt:
    exit_code: int
    lines: list[str]
    errors: str

    @property
    def losses(self) -> dict[int, str]:
        """As printed: equal text is equal numbers."""
        return {int(found["step"]): found["loss"] for line in self.lines if (found := metrics_in(line))}

    @property
    def resumed_from(self) -> tuple[int, str, str] | None:
        """(step, file, sha256)."""
        for line in self.lines:
            if found := _RESUMED.match(line):
                return int(found[1]), found[2], found[3]
        return None


@dataclass(kw_only=True)
class Job:
    """One job's directories under ``root``; each ``start`` is an attempt."""

    root: Path
    options: list[str] = field(default_factory=list)
    launcher: list[str] = field(default_factory=lambda: [sys.executable])

    @classmethod
    def under(cls, root: Path, *options: str) -> Self:
        """With a copy of the program in a folder of another name, as SageMaker unpacks it."""
        shutil.copytree(
            Path(training.__file__).parent, root / "code", ignore=shutil.ignore_patterns("__pycache__")
        )
        (root / "output").mkdir()
        return cls(root=root, options=list(options))

    @property
    def checkpoints(self) -> Path:
        return self.root / "checkpoints"

    def start(self, *options: str) -> "subprocess.Popen[str]":
        env = {
            **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            "SM_CHECKPOINT_DIR": str(self.checkpoints),
            "SM_MODEL_DIR": str(self.root / "model"),
            "SM_OUTPUT_DIR": str(self.root / "output"),
        }
        return subprocess.Popen(
            [*self.launcher, "train.py", *self.options, *options],
            cwd=self.root / "code",
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *options: str) -> Attempt:
        return finished(self.start(*options))

    def run_until(self, step: int, sent: signal.Signals, *options: str) -> Attempt:
        """Send the signal when the loss line of this step is seen."""
        process = self.start(*options)
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line.rstrip())
            if line.startswith(f"metric step={step} "):
                process.send_signal(sent)
                break
        rest = finished(process)
        return Attempt(exit_code=rest.exit_code, lines=lines + rest.lines, errors=rest.errors)


def finished(process: "subprocess.Popen[str]") -> Attempt:
    out, errors = process.communicate(timeout=400)
    return Attempt(exit_code=process.returncode, lines=out.splitlines(), errors=errors)
