"""The scripts of three libraries, the cases in which each is stopped, and the job that becomes of it."""

import io
import os
import subprocess
import sys
import tarfile
from dataclasses import dataclass, field
from pathlib import Path

import boto3
from trainmaster_client.cli.training_code import preemptible_files
from trainmaster_client.launcher import LAUNCHER

from demos.stage.evidence import Document
from demos.stage.job_requests import INSTANCE_TYPE, request
from demos.scripts import gated
from demos.scripts.gated import GATE_VARIABLE, PROGRAM_VARIABLE
from local.twin_process import TwinProcess

ROOT = Path(__file__).parents[2]
TRAINING = ROOT / "training"
OTHER_TYPE = "ml.m5.2xlarge"
"""Stays free of urgent jobs: a job that may run on one instance of it resumes there."""
HOSTS = 2
"""Hosts of the jobs that resume on another number of ranks, on one host."""
SAMPLES = 64
"""Samples in the data of the scripts in ``programs``."""
EVALUATE_EVERY = 6
STOPPED_IN = 2 * EVALUATE_EVERY
"""The step in which the scripts in ``programs`` are stopped."""
_GATED = Path(gated.__file__)
_SETTINGS = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
_OWN = {"STEPS": str(3 * EVALUATE_EVERY), "GLOBAL_BATCH": "4", "DROPOUT": "0.1"}
_ON_RANKS = _OWN | {"GLOBAL_BATCH": "8", "DROPOUT": "0"}
"""Settings of cases on several ranks. Each rank draws dropout masks of its own; if there are none, losses
differ by the order of summation alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    name: str
    title: str
    example: Path
    """The library's script in docs/training/scripts.md."""
    program: Path
    """The script that plays the other cases."""


_EXAMPLES, _PROGRAMS = ROOT / "docs/examples/training", Path(__file__).parent / "programs"
LIBRARIES = (
    Library(
        name="hf",
        title="HF Trainer",
        example=_EXAMPLES / "hf_trainer.py",
        program=_PROGRAMS / "hf.py",
    ),
    Library(
        name="lightning",
        title="Lightning",
        example=_EXAMPLES / "lightning_trainer.py",
        program=_PROGRAMS / "lightning_fit.py",
    ),
    Library(
        name="accelerate",
        title="Accelerate",
        example=_EXAMPLES / "accelerate_loop.py",
        program=_PROGRAMS / "accelerate_loop.py",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One way in which the script of each library is stopped and resumed."""

    name: str
    title: str
    settings: dict[str, str]
    gate: int = STOPPED_IN - 1
    """Number of calls of ``gated.py`` that return before the stop."""
    is_example: bool = False
    """True if the scripts are those of docs/training/scripts.md, which know nothing of cases."""
    hosts: int = 1
    refused_by: frozenset[str] = field(default_factory=frozenset)
    """Libraries whose adapter refuses to resume on one host."""

    @property
    def steps(self) -> int:
        return int(self.settings["STEPS"])


CASES = (
    Case(
        name="step",
        title="in a step",
        settings={"STEPS": "100"},
        gate=32,  # samples: 4 are in a step, and the libraries read some batches ahead
        is_example=True,
    ),
    Case(
        name="evaluation",
        title="on an evaluation step",
        settings=_OWN | {"EVALUATE_EVERY": str(EVALUATE_EVERY)},
    ),
    Case(name="ranks", title="from 2 ranks to 1", settings=_ON_RANKS, hosts=HOSTS),
    Case(name="stream", title="on a stream", settings=_OWN | {"STREAM": "1"}),
    Case(
        name="stream-ranks",
        title="on a stream, 2 ranks to 1",
        settings=_ON_RANKS | {"STREAM": "1"},
        hosts=HOSTS,
        refused_by=frozenset({"lightning"}),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """The script of a library in a case."""

    library: Library
    case: Case

    @property
    def name(self) -> str:
        return f"{self.library.name}-{self.case.name}"

    @property
    def job(self) -> str:
        return f"script-{self.name}"

    @property
    def path(self) -> Path:
        return self.library.example if self.case.is_example else self.library.program


def undisturbed(script: Script, folder: Path) -> "subprocess.Popen[bytes]":
    """Run the same script outside of the twin, which nothing holds; it prints to its log in ``folder``."""
    place = folder / f"{script.name}-undisturbed"
    place.mkdir()
    paths = {"SM_CHECKPOINT_DIR": str(place / "checkpoints"), "SM_MODEL_DIR": str(place / "model")}
    env = os.environ | _SETTINGS | script.case.settings | paths | {"PYTHONPATH": str(ROOT)}
    ranks = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={script.case.hosts}"]
    with log_of(script, folder).open("wb") as log:
        command = [sys.executable, *(ranks if script.case.hosts > 1 else []), str(script.path)]
        return subprocess.Popen(command, cwd=place, env=env, stdout=log, stderr=subprocess.STDOUT)


def log_of(script: Script, folder: Path) -> Path:
    """Return the path of the file that the undisturbed run prints to."""
    return folder / f"{script.name}.log"


def script_request(script: Script, twin: TwinProcess, gate: Path) -> Document:
    """Make the request for the script under the launcher; its source directory goes to S3 first.

    Args:
        script: The script and its case.
        twin: The twin that runs it.
        gate: The file that says how far it may go (``gated.py``).
    """
    key = f"code/{script.job}.tar.gz"
    boto3.client("s3").put_object(Bucket=twin.ready["bucket"], Key=key, Body=_archive(script))
    source = f"s3://{twin.ready['bucket']}/{key}"
    environment = _SETTINGS | script.case.settings
    wanted = request(script.job, twin, LAUNCHER, instances=script.case.hosts) | {
        "HyperParameters": {"sagemaker_program": _GATED.name, "sagemaker_submit_directory": source},
        "CheckpointConfig": {"S3Uri": f"s3://{twin.ready['bucket']}/checkpoints/{script.job}"},
        "Environment": environment | {GATE_VARIABLE: str(gate), PROGRAM_VARIABLE: script.path.name},
    }
    if script.case.hosts > 1:
        shapes = f"{INSTANCE_TYPE}={script.case.hosts} {OTHER_TYPE}=1"
        wanted["Tags"] = [{"Key": "trainmaster:alternatives", "Value": shapes}]
    return wanted


def _archive(script: Script) -> bytes:
    """Pack what ``trainmaster training-code DIR --adapters`` puts beside the script, and the script."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        tar.add(script.path, script.path.name)
        tar.add(_GATED, _GATED.name)
        tar.add(TRAINING / "launch.py", "launch.py")
        for name, file in preemptible_files(ROOT).items():
            tar.add(ROOT / file, name)
    return packed.getvalue()
