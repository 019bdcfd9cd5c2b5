"""The script of the guide, with nothing beside it but what the guide's command puts there."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from trainmaster_client.cli.training_code import training_code

from tests.markdown import blocks, text_of

pytestmark = pytest.mark.thorough


def _unpack(place: Path) -> None:
    (script,) = blocks(text_of("docs/training/preemption.md"), "python")
    # Steps of the example take no time: it ends long after the signal that the test sends.
    (place / "train.py").write_text(script.text.replace("STEPS = 200\n", "STEPS = 20_000\n"))
    copies, _ = blocks(text_of("docs/training/preemption.md"), "bash")
    assert copies.text == "trainmaster training-code my-project --loop\n"
    training_code(place, loop=True, adapters=False, launcher_only=False)


def _attempt(place: Path, until: str) -> tuple[int, list[str]]:
    """Launch it as the guide does, and stop it when a line begins so."""
    _, command = blocks(text_of("docs/training/preemption.md"), "bash")
    assert command.text.startswith("SAGEMAKER_BASE_DIR=$PWD/ml python launch.py &\n")
    env = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    env |= {"SAGEMAKER_BASE_DIR": str(place / "ml"), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "launch.py"], cwd=place, env=env, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line.rstrip())
        if line.startswith(until):
            process.send_signal(signal.SIGTERM)
            break
    rest, _ = process.communicate(timeout=60)
    return process.returncode, lines + rest.splitlines()


def _steps(lines: list[str]) -> list[int]:
    return [int(line.split()[0].removeprefix("step=")) for line in lines if line.startswith("step=")]


def test_a_stopped_script_goes_on_after_the_step_it_was_stopped_at(tmp_path: Path) -> None:
    _unpack(tmp_path)
    code, first = _attempt(tmp_path, "step=7 ")
    assert code == 143, first
    last = _steps(first)[-1]
    status = json.loads((tmp_path / "ml/checkpoints/status.json").read_bytes())
    assert (status["state"], status["step"], status["lost_steps"]) == ("preempted", last, 0)
    code, second = _attempt(tmp_path, f"step={last + 3} ")
    assert code == 143, second
    assert _steps(second)[0] == last + 1
