"""The script of the guide, as it stands there: alone, then on two ranks from where it was."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.markdown import blocks, text_of

_ROOT = Path(__file__).parents[4]
_TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")


def _run(place: Path, *launcher: str, steps: int) -> str:
    env = os.environ | {"PYTHONPATH": str(_ROOT), "STEPS": str(steps), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, *launcher, "script.py"]
    done = subprocess.run(command, cwd=place, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.long
def test_the_script_of_the_guide_runs_alone_and_goes_on_with_two_ranks(tmp_path: Path) -> None:
    (script,) = blocks(text_of("docs/training/checkpoints.md"), "python")
    (tmp_path / "script.py").write_text(script.text)
    assert "starting from scratch" in _run(tmp_path, steps=10)
    assert "resumed from step=10" in _run(tmp_path, *_TORCHRUN, steps=20)
    status = json.loads((tmp_path / "checkpoints/status.json").read_bytes())
    assert (status["state"], status["step"], status["checkpoint"]) == ("completed", 20, "step-00000020")
    manifest = json.loads((tmp_path / "checkpoints/step-00000020/manifest.json").read_bytes())
    assert manifest["guard"] == {"hidden": "16"}
    assert manifest["carried"].keys() == {"loss"}
    assert manifest["world_size"] == 2
