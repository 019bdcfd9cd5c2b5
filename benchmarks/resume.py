"""How long a job of the tiny model takes to resume, once its program is imported.

Each attempt is a fresh process that runs the program itself: it joins its world of one rank, opens its data,
makes the model, looks for a checkpoint and loads it. Its clock starts when everything is imported and stops
at the line that says where it resumes. CPU seconds are checked, of the fastest attempt: on a free core they
are the time that passes, on a busy machine that time is mostly other programs'.
"""

import argparse
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory

from trainmaster_client.report import Report

ROOT = Path(__file__).resolve().parents[1]
MAX_SECONDS = 2.0
ATTEMPTS = 3
_RESUMES = 'event {"kind":"resume"'
_STEPS = 2
"""Steps of each attempt; the first one resumes from nothing."""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.resume", description=__doc__)
    parser.add_argument("--attempts", type=int, default=ATTEMPTS, help="that resume (%(default)s)")
    parser.add_argument("--json", type=Path, default=ROOT / "build/resume.json")
    parser.add_argument("--attempt", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--steps", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.attempt:
        return _attempt(options.attempt, options.steps)
    report = Report("benchmarks.resume")
    options.json.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=options.json.parent) as folder:
        measured = [_measured(Path(folder), number) for number in range(1 + options.attempts)][1:]
    report.facts["attempts"] = measured
    fastest = min(measured, key=lambda attempt: attempt["cpu"])
    print(
        f"fastest of {len(measured)}: import {fastest['import_cpu']:.2f} s of CPU time, "
        f"then to the checkpoint {fastest['cpu']:.2f} s; {fastest['passed']:.2f} s passed in these"
    )
    report.check(
        "resume",
        expected=f"at most {MAX_SECONDS:g} s of CPU time after the import",
        actual=f"{fastest['cpu']:.2f} s",
        ok=fastest["cpu"] <= MAX_SECONDS,
    )
    return report.finish(options.json)


def _measured(folder: Path, number: int) -> dict[str, float]:
    command = [sys.executable, "-m", __spec__.name, "--attempt", str(folder), "--steps"]
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    subprocess.run([*command, str(_STEPS * (number + 1))], env=env, check=True)
    times: dict[str, float] = json.loads((folder / "found.json").read_bytes())
    return times


class _Lines(io.StringIO):
    """Collects the program's output, and notes when it says that it resumes."""

    def __init__(self) -> None:
        super().__init__()
        self.resumed_at: tuple[float, float] | None = None
        """CPU time of this process, and the clock."""

    def write(self, text: str) -> int:
        if text.startswith(_RESUMES):
            self.resumed_at = (time.process_time(), time.perf_counter())
        return super().write(text)


def _attempt(folder: Path, steps: int) -> int:
    from training.config import read_config  # noqa: PLC0415  its time is measured
    from training.job import run  # noqa: PLC0415
    from training.preemptible.preempt import StopRequest  # noqa: PLC0415

    imported, began = time.process_time(), time.perf_counter()
    texts = {
        "precision": "fp32",
        "steps": steps,
        "checkpoint-dir": folder / "checkpoints",
        "model-dir": folder,
    }
    config = read_config([f"--{name}={text}" for name, text in texts.items()], {})
    with StopRequest() as stop, redirect_stdout(_Lines()) as lines:
        code = run(config, {}, stop)
    if lines.resumed_at:
        cpu, clock = lines.resumed_at
        times = {"import_cpu": imported, "cpu": cpu - imported, "passed": clock - began}
        (folder / "found.json").write_text(json.dumps(times))
    else:
        (folder / "found.json").write_text("{}")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
