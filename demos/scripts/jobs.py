"""The three scripts, as docs/training/scripts.md has them, and the job that each becomes."""

import io
import os
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

import boto3
from trainmaster_client.cli.training_code import preemptible_files
from trainmaster_client.launcher import LAUNCHER

from demos.evidence import Document
from demos.requests import request
from demos.scripts import gated
from demos.scripts.gated import GATE_VARIABLE, PROGRAM_VARIABLE
from local.twin_process import TwinProcess

ROOT = Path(__file__).parents[2]
TRAINING = ROOT / "training"
STEPS = 100
_GATED = Path(gated.__file__)
_SETTINGS = {"STEPS": str(STEPS), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    name: str
    title: str

    @property
    def job(self) -> str:
        return f"script-{self.name}"

    @property
    def path(self) -> Path:
        modules = {"hf": "hf_trainer", "lightning": "lightning_trainer", "accelerate": "accelerate_loop"}
        return ROOT / f"docs/examples/training/{modules[self.name]}.py"


SCRIPTS = (
    Script(name="hf", title="Hugging Face Trainer"),
    Script(name="lightning", title="Lightning"),
    Script(name="accelerate", title="Accelerate"),
)


def undisturbed(script: Script, folder: Path) -> "subprocess.Popen[bytes]":
    """The same script outside of everything, without a pause; prints to ``folder``'s log."""
    place = folder / f"{script.name}-undisturbed"
    place.mkdir()
    paths = {"SM_CHECKPOINT_DIR": str(place / "checkpoints"), "SM_MODEL_DIR": str(place / "model")}
    env = os.environ | _SETTINGS | paths | {"PYTHONPATH": str(ROOT)}
    with (folder / f"{script.name}.log").open("wb") as log:
        command = [sys.executable, str(script.path)]
        return subprocess.Popen(command, cwd=place, env=env, stdout=log, stderr=subprocess.STDOUT)


def script_request(script: Script, twin: TwinProcess, gate: Path) -> Document:
    """Ask for one instance, the script under the launcher; its source directory goes to S3 first.

    Args:
        script: Which.
        twin: Where.
        gate: The file that says how many samples it may read (``gated.py``).
    """
    key = f"code/{script.job}.tar.gz"
    boto3.client("s3").put_object(Bucket=twin.ready["bucket"], Key=key, Body=_archive(script))
    source = f"s3://{twin.ready['bucket']}/{key}"
    return request(script.job, twin, LAUNCHER) | {
        "HyperParameters": {"sagemaker_program": _GATED.name, "sagemaker_submit_directory": source},
        "CheckpointConfig": {"S3Uri": f"s3://{twin.ready['bucket']}/checkpoints/{script.job}"},
        "Environment": _SETTINGS | {GATE_VARIABLE: str(gate), PROGRAM_VARIABLE: script.path.name},
    }


def _archive(script: Script) -> bytes:
    """What ``trainmaster training-code DIR --adapters`` puts beside the script."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        tar.add(script.path, script.path.name)
        tar.add(_GATED, _GATED.name)
        tar.add(TRAINING / "launch.py", "launch.py")
        for name, file in preemptible_files(ROOT).items():
            tar.add(ROOT / file, name)
    return packed.getvalue()
