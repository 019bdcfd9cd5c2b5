"""The job of each door, which waits, is preempted and resumes."""

from demos.evidence import Document
from demos.requests import request
from local.twin_process import TwinProcess

STEPS = 20
"""After it was resumed. The first attempt trains until somebody preempts it, however long that takes."""
STEP_SECONDS = 0.25
SAVED_EVERY = 12
"""Steps. What is in S3 is what rested for two seconds."""

_PROGRAM = f"""
import os, time
saved = os.environ["SM_CHECKPOINT_DIR"] + "/step"
begin = int(open(saved).read()) if os.path.exists(saved) else 0
print(f"resumed from step={{begin}}" if begin else "begins", flush=True)
for step in range(begin + 1, begin + {STEPS} + 1 if begin else 100_000):
    time.sleep({STEP_SECONDS})
    print(f"step={{step}}", flush=True)
    if step % {SAVED_EVERY} == 0:
        with open(saved + "~", "w") as draft:
            draft.write(str(step))
        os.replace(draft.name, saved)
"""
_RUN_PROGRAM = ["python", "-c", "import os; exec(os.environ['PROGRAM'])"]
"""A part of a command has at most 256 characters, a variable 512."""


def job_of(name: str, twin: TwinProcess) -> Document:
    """One instance; saves each step."""
    return request(name, twin, _RUN_PROGRAM) | {
        "CheckpointConfig": {"S3Uri": checkpoints(name, twin)},
        "Environment": {"PROGRAM": _PROGRAM},
    }


def checkpoints(name: str, twin: TwinProcess) -> str:
    return f"s3://{twin.ready['bucket']}/checkpoints/{name}"
