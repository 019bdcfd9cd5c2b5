"""Runs the training program on a world of its own, once for each number of ranks."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.training.scaling.efficiency import Measured, communication_share

PROGRAM = Path(__file__).parents[3] / "training/train.py"
_LINES = 3
_CHARACTERS = 600
_PORTS_APART = 17
"""Between the worlds of a cluster: the port of the one before may still be closing."""
_LOOK_SECONDS = 0.05
_GRACE_SECONDS = 5.0
"""Seconds for the other ranks once one has failed: they would wait for it in vain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    options: Mapping[str, str]
    """Options of the program; batch_size is of one rank."""
    tokens_of_a_rank: int
    """Tokens of a rank in a step."""
    warmup: int
    steps: int
    """Steps that are measured, after the warm-up."""
    timeout_seconds: float

    @property
    def traced(self) -> int:
        """Step whose trace is kept: the one after the last that is measured."""
        return self.warmup + self.steps + 1

    def arguments(self, world: int, place: Path) -> list[str]:
        batch = int(self.options["batch_size"]) * world
        options = {
            **self.options,
            "batch_size": str(batch),
            "steps": str(self.traced),
            "profile_step": str(self.traced),
            "log_every": "1",
            "checkpoint_every": str(self.traced + 1),
            "checkpoint_dir": str(place / "checkpoints"),
            "model_dir": str(place / "model"),
            "metrics_file": str(place / "metrics"),
            "export": "false",
            # Ranks of a cluster that had no part in the world before come early.
            "join_seconds": str(self.timeout_seconds),
        }
        return [f"--{name}={text}" for name, text in options.items()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seats:
    """The ranks that this process starts."""

    ranks: Sequence[int]
    per_host: int
    address: str
    port: int | None
    """That all hosts have agreed on, and of each later world a higher one; None: a free one."""

    @classmethod
    def of(cls, env: Mapping[str, str], worlds: Sequence[int]) -> "Seats":
        """Find the ranks that this process starts: one under a launcher, all of them alone."""
        if "RANK" not in env:
            return cls(ranks=range(max(worlds)), per_host=max(worlds), address="127.0.0.1", port=None)
        return cls(
            ranks=[int(env["RANK"])],
            per_host=int(env.get("LOCAL_WORLD_SIZE", "1")),
            address=env["MASTER_ADDR"],
            port=int(env["MASTER_PORT"]),
        )

    @property
    def is_first(self) -> bool:
        return 0 in self.ranks


def measured(plan: Plan, world: int, number: int, seats: Seats, place: Path) -> Measured | None:
    """Measure a world; only the first rank's process has a result. A failure is part of it."""
    error = _ran(plan, world, number, seats, place)
    if not seats.is_first:
        return None
    seconds = _step_seconds(place / "metrics", plan) if not error else ()
    if not error and len(seconds) < plan.steps:
        error = f"{len(seconds)} of {plan.steps} steps were reported"
    trace = place / "output" / f"trace-step-{plan.traced:08d}.json"
    return Measured(
        world=world,
        tokens_per_step=plan.tokens_of_a_rank * world,
        step_seconds=() if error else seconds,
        communication_share=communication_share(trace) if not error and trace.is_file() else None,
        error=error,
    )


def _ran(plan: Plan, world: int, number: int, seats: Seats, place: Path) -> str:
    """Run the world; return what failed, in words, or empty if all this process started ended well."""
    place.mkdir(parents=True, exist_ok=True)
    mine = [rank for rank in seats.ranks if rank < world]
    port = _free_port() if seats.port is None else seats.port + _PORTS_APART * (number + 1)
    command = [sys.executable, str(PROGRAM), *plan.arguments(world, place)]
    with ExitStack() as files:
        started = []
        for rank in mine:
            log = files.enter_context((place / f"rank-{rank}.log").open("wb"))
            env = _environment(rank, world, seats, port) | {"SM_OUTPUT_DATA_DIR": str(place / "output")}
            started.append(subprocess.Popen(command, env=env, stdout=log, stderr=subprocess.STDOUT))
        codes = _ended(started, plan.timeout_seconds)
    wrong = {rank: code for rank, code in zip(mine, codes, strict=True) if code}
    if not wrong:
        return ""
    # The others only miss the one that failed by itself.
    rank = min(wrong, key=lambda failed: (wrong[failed] < 0, failed))
    return f"rank {rank}: exit code {wrong[rank]}: {_last_words(place / f'rank-{rank}.log')}"


def _ended(started: "Sequence[subprocess.Popen[bytes]]", seconds: float) -> list[int]:
    """Return their exit codes. After a failure, or when the time is up, the rest are killed."""
    deadline = time.monotonic() + seconds
    try:
        while time.monotonic() < deadline and any(process.poll() is None for process in started):
            if any(process.poll() for process in started):
                deadline = min(deadline, time.monotonic() + _GRACE_SECONDS)
            time.sleep(_LOOK_SECONDS)
    finally:  # a signal to this process ends them, too
        for process in started:
            if process.poll() is None:
                process.kill()
    return [process.wait() for process in started]


def _environment(rank: int, world: int, seats: Seats, port: int) -> dict[str, str]:
    """Return the variables that a launcher sets. Its own store is not for this world."""
    per_host = min(seats.per_host, world)
    left_out = ("TORCHELASTIC", "SM_CHECKPOINT", "SM_MODEL", "SM_HOSTS")
    kept = {name: text for name, text in os.environ.items() if not name.startswith(left_out)}
    return kept | {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank % seats.per_host),
        "WORLD_SIZE": str(world),
        "LOCAL_WORLD_SIZE": str(per_host),
        "MASTER_ADDR": seats.address,
        "MASTER_PORT": str(port),
    }


def _step_seconds(metrics: Path, plan: Plan) -> tuple[float, ...]:
    """Return the seconds of steps, without the warm-up and the traced step."""
    lines = [json.loads(line) for line in metrics.read_text().splitlines()] if metrics.is_file() else []
    wanted = range(plan.warmup + 1, plan.traced)
    return tuple(line["step_ms"] / 1000 for line in lines if line["step"] in wanted)


def _last_words(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()[-_LINES:]
    return " / ".join(lines)[-_CHARACTERS:] or "it said nothing"


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
