"""The two ways in which strangers begin: a clone and ``make setup``, or the wheel in an empty environment."""

import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local.twin_process import running_twin
from tests.first_ten_minutes.steps import STEP_SECONDS, Beginning, StepError
from tests.markdown import ROOT

POLICY = {"version": 1, "pools": [{"name": "cpu", "capacity": {"ml.m5.xlarge": 1}}]}
"""README's."""
EXTRAS = "sdk2,local"
_EXAMPLES = Path("docs/examples")
_LOOK_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """Installed: where its programs are, where to stand, and what to run there."""

    bin: Path
    folder: Path
    program: Path


def by_checkout(beginning: Beginning) -> Ready:
    """What README says: a clone of the commit, ``make setup``, and its first ``fit()``."""
    clone = beginning.work / "trainmaster"
    with beginning.step("clone"):
        beginning.run("git", "clone", "--quiet", "--no-local", str(ROOT), str(clone))
    with beginning.step("make setup"):
        beginning.run("make", "setup", f"PYTHON={_python()}", cwd=clone)
    return Ready(bin=clone / ".venv/bin", folder=clone, program=clone / _EXAMPLES / "doors/first_fit.py")


def by_wheel(beginning: Beginning, wheel: Path) -> Ready:
    """What install.md says: an environment, the wheel with two extras, a program and its ``train.py``."""
    bins = beginning.work / "venv/bin"
    with beginning.step("python -m venv"):
        beginning.run(_python(), "-m", "venv", "venv")
    with beginning.step(f"pip install trainmaster[{EXTRAS}]"):
        beginning.run(str(bins / "python"), "-m", "pip", "install", "--quiet", f"{wheel}[{EXTRAS}]")
    for name in ("first_fit.py", "train.py"):
        shutil.copy(ROOT / _EXAMPLES / "install" / name, beginning.work)
    return Ready(bin=bins, folder=beginning.work, program=beginning.work / "first_fit.py")


def first_fit(beginning: Beginning, ready: Ready) -> dict[str, Any]:
    """Start the twin, run the program, look into the queue meanwhile; what was seen."""
    files = beginning.folder / "twin"
    files.mkdir()
    pairs = (f"{name}={value}" for name, value in beginning.environment().items())
    program = ["env", "-i", *pairs, str(ready.bin / "trainmaster"), "local", "up"]
    with ExitStack() as running:
        with beginning.step("trainmaster local up"):
            twin = running.enter_context(
                running_twin(files, policy=POLICY, checkout=ready.folder, program=program)
            )
        use = twin.environment()
        with beginning.step("first fit()"):
            seen = _fit(beginning, ready, use)
        version = beginning.run(str(ready.bin / "trainmaster"), "--version").strip()
        names = sorted({job["name"] for jobs in seen["queues"] for job in jobs})
        afterwards = [_job(beginning, ready, use, name) for name in names]
        return {**seen, "version": version, "afterwards": afterwards}


def _fit(beginning: Beginning, ready: Ready, use: dict[str, str]) -> dict[str, Any]:
    """Run it in the background; the queue as it was each time that it was another, until the job ran."""
    output = beginning.folder / "fit.log"
    queues: list[list[dict[str, str]]] = []
    with output.open("wb") as log:
        fit = subprocess.Popen(
            [str(ready.bin / "python"), str(ready.program)],
            cwd=ready.folder,
            env=beginning.environment(use),
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        deadline = time.monotonic() + STEP_SECONDS
        while fit.poll() is None:
            if time.monotonic() > deadline:
                fit.kill()
            if not _is_running(queues) and (jobs := _queue(beginning, ready, use)) not in queues:
                queues.append(jobs)
            time.sleep(_LOOK_SECONDS)
    printed = output.read_text(encoding="utf-8", errors="replace")
    if fit.returncode:
        raise StepError(f"{ready.program.name} ended with {fit.returncode}:\n{printed[-4000:]}")
    return {"queues": [jobs for jobs in queues if jobs], "fit": printed.splitlines()}


def _is_running(queues: list[list[dict[str, str]]]) -> bool:
    return any(job["state"] == "running" for jobs in queues for job in jobs)


def _queue(beginning: Beginning, ready: Ready, use: dict[str, str]) -> list[dict[str, str]]:
    """Names and states in ``trainmaster queue``."""
    printed = beginning.run(str(ready.bin / "trainmaster"), "queue", "--json", env=use)
    return [{key: job[key] for key in ("name", "state")} for job in json.loads(printed)["jobs"]]


def _job(beginning: Beginning, ready: Ready, use: dict[str, str], name: str) -> dict[str, str]:
    job = json.loads(beginning.run(str(ready.bin / "trainmaster"), "show", name, "--json", env=use))
    return {key: job[key] for key in ("name", "state")}


def _python() -> str:
    """The Python that made this environment: a new one is made like it."""
    return os.path.realpath(sys.executable)
