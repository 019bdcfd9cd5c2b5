"""The attempts of one training: the real program, killed as a schedule says, resuming from checkpoints."""

import json
import os
import random
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from benchmarks.training.proof.kill_schedule import PROGRAM, SILENT_SECONDS, Kill, Schedule, allowed_exits
from benchmarks.training.proof.processes import Catcher, Started, kill_tree
from benchmarks.training.proof.spoil import spoil_newest
from training.metrics import metrics_in

_LAUNCHER = Path(__file__).parents[3] / "training/launch.py"
_PACE_SECONDS = 0.1
"""Shortest step of an attempt that is killed, so that the signal comes close to its step."""
_LINES_KEPT = 40
_CHARACTERS_KEPT = 1000

Loss = tuple[int, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    world: int
    kill: Kill | None
    sent_at: int | None
    """The step that was seen to be done when the signal was sent; None: it was not."""
    spoiled: str | None
    """Damage done to the newest checkpoint before this attempt began; None if none was done."""
    exit_code: int
    """Negative: the signal that ended it."""
    losses: tuple[Loss, ...]
    """(step, nats per token), to the last bit, in the order in which they were trained."""
    said: tuple[str, ...]
    """Lines it printed beside the metric lines."""
    error: str
    """The failure file, else the end of stderr; empty where the exit code is an expected one."""
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One training in a container of its own: ``place`` is its /opt/ml, the same for each attempt."""

    place: Path
    schedule: Schedule
    hyperparameters: Mapping[str, str]
    program: Path = PROGRAM
    spoils: random.Random | None = None
    """Spoils the newest checkpoint before each attempt that has another one to resume from."""
    silent_seconds: float = SILENT_SECONDS

    @property
    def checkpoints(self) -> Path:
        return self.place / "checkpoints"

    def attempts(self, report: Callable[[Attempt], None]) -> list[Attempt]:
        """Run all attempts; one that ends as it should not is the last."""
        made: list[Attempt] = []
        done = 0
        for number, (world, kill) in enumerate(zip_longest(self.schedule.worlds, self.schedule.kills)):
            made.append(self._attempt(number, world, kill, done))
            done = max([done, *(step for step, _ in made[-1].losses)])
            report(made[-1])
            if made[-1].error:
                break
        return made

    def _attempt(self, number: int, world: int, kill: Kill | None, done: int) -> Attempt:
        """Start it, read its lines, and send the signal when it is time."""
        metrics, errors = self.place / f"metrics-{number}.jsonl", self.place / f"errors-{number}.txt"
        self._write_config(metrics, kill)
        spoiled = spoil_newest(self.checkpoints, self.spoils) if self.spoils else None
        printed: list[str] = []
        since = time.monotonic()
        command, env = [sys.executable, str(_LAUNCHER)], self._environment(world)
        with Started(command, env=env, errors=errors, silent_seconds=self.silent_seconds) as started:
            sent_at = self._read(started, kill, printed)
            code = started.process.wait()
        allowed = allowed_exits(
            str(kill) if kill else None, sent_at=sent_at, done=done, steps=self.schedule.steps
        )
        return Attempt(
            world=world,
            kill=kill,
            sent_at=sent_at,
            spoiled=spoiled,
            exit_code=code,
            losses=_losses_in(metrics),
            said=tuple(printed[:_LINES_KEPT]),
            error="" if code in allowed else self._error(errors, was_silent=started.was_silent),
            seconds=time.monotonic() - since,
        )

    def _write_config(self, metrics: Path, kill: Kill | None) -> None:
        """Write what SageMaker writes for a job of one host; all hyperparameters are texts there."""
        own = {
            "sagemaker_program": str(self.program),
            "steps": str(self.schedule.steps),
            "log_every": "1",
            "metrics_file": str(metrics),
            "min_step_seconds": str(_PACE_SECONDS if kill else 0),
        }
        hosts = {"current_host": "algo-1", "hosts": ["algo-1"], "network_interface_name": "lo"}
        config = self.place / "input" / "config"
        for folder in (config, self.place / "output"):
            folder.mkdir(parents=True, exist_ok=True)
        (config / "hyperparameters.json").write_text(json.dumps({**self.hyperparameters, **own}))
        (config / "resourceconfig.json").write_text(json.dumps(hosts))

    def _environment(self, world: int) -> dict[str, str]:
        """Return our variables, with the folders of SageMaker set below ``place``."""
        kept = {name: text for name, text in os.environ.items() if not name.startswith("SM_")}
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        return kept | {
            "SAGEMAKER_BASE_DIR": str(self.place),
            "NPROC_PER_NODE": str(world),
            "MASTER_PORT": str(port),
        }

    def _read(self, attempt: Started, kill: Kill | None, printed: list[str]) -> int | None:
        """Read its lines until it ends; return the step at which the signal was sent, None if it was not."""
        step, sent_at = 0, None
        catcher = None
        if kill is not None and kill.in_save:
            catcher = Catcher(attempt.process.pid, self.checkpoints, kill, reached=lambda: step)
        for line in attempt.lines():
            metrics = metrics_in(line)
            if metrics is None:
                printed.append(line.rstrip())
                continue
            step = int(metrics["step"])
            if kill is not None and catcher is None and sent_at is None and step >= kill.step:
                sent_at = step
                if kill.signal is signal.SIGKILL:
                    kill_tree(attempt.process.pid)
                else:
                    os.kill(attempt.process.pid, kill.signal)
        if catcher is not None:
            catcher.end()
            return catcher.caught_at
        return sent_at

    def _error(self, errors: Path, *, was_silent: bool) -> str:
        if was_silent:
            return f"it printed nothing for {self.silent_seconds:g} s"
        failure = self.place / "output" / "failure"
        words = failure.read_text() if failure.exists() else errors.read_text(errors="replace")
        return words[-_CHARACTERS_KEPT:].strip() or "it said nothing"


def _losses_in(metrics: Path) -> tuple[Loss, ...]:
    if not metrics.exists():
        return ()
    records = [json.loads(line) for line in metrics.read_text().splitlines()]
    return tuple((record["step"], float.fromhex(record["loss_hex"])) for record in records)
