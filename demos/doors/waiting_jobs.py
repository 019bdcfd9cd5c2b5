"""The job of each door, which waits, is preempted and resumes; it ends when the story says so."""

from pathlib import Path

from demos.stage.evidence import Document
from demos.stage.job_requests import request
from local.twin_process import TwinProcess

STEPS = 20
"""Least steps after it was resumed. The first attempt trains until it is preempted."""
SAVED_EVERY = 12
"""Steps. What is in S3 is what rested for two seconds."""
_STEP_SECONDS = 0.25

_PROGRAM = f"""
import os, time
saved = os.environ["SM_CHECKPOINT_DIR"] + "/step"
step = begin = int(open(saved).read()) if os.path.exists(saved) else 0
print(f"resumed from step={{begin}}" if begin else "begins", flush=True)
while not (begin and step >= begin + {STEPS} and os.path.exists(os.environ["END"])):
    time.sleep({_STEP_SECONDS})
    step += 1
    print(f"step={{step}}", flush=True)
    if step % {SAVED_EVERY} == 0:
        with open(saved + "~", "w") as draft:
            draft.write(str(step))
        os.replace(draft.name, saved)
"""
_RUN_PROGRAM = ["python", "-c", "import os; exec(os.environ['PROGRAM'])"]
"""A part of a command has at most 256 characters, a variable 512."""


def job_of(name: str, twin: TwinProcess, *, ends_with: Path) -> Document:
    """Return a job of one instance; resumed, it ends once there is a file ``ends_with``."""
    return request(name, twin, _RUN_PROGRAM) | {
        "CheckpointConfig": {"S3Uri": checkpoints(name, twin)},
        "Environment": {"PROGRAM": _PROGRAM, "END": str(ends_with)},
    }


def checkpoints(name: str, twin: TwinProcess) -> str:
    return f"s3://{twin.ready['bucket']}/checkpoints/{name}"
