"""The environment variables of a container.

Code in the container should take its paths from here or from its hyperparameters, with /opt/ml as the
default. ``SM_CHECKPOINT_DIR`` is the twin's own: no such variable exists on SageMaker, where the default
/opt/ml/checkpoints is right; here it stands for that path. ``SM_MASTER_ADDR`` and ``SM_MASTER_PORT`` are
where the hosts of a job can meet. SageMaker itself sets neither: where they are missing, the first host's
name is the address and any port will do.
"""

import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from local.clock import TwinClock
from local.sagemaker import script_mode
from local.sagemaker.hosts import ADDRESS, Place
from local.sagemaker.jobs import TrainingJob
from local.sagemaker.layout import Layout
from local.sagemaker.spec import TrainingSpec
from local.sagemaker.toolkit import MODULE, toolkit_variables

_INHERITED = ("LD_LIBRARY_PATH", "TMPDIR", "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY")
"""Variables of this machine that containers inherit. Without the first two the interpreter may not start,
or find no place for temporary files; the others hide parts of this machine's processor from torch, in
containers too."""

MARK = "TRAINMASTER_TWIN_CONTAINER"
"""A variable whose value no two containers share, by which the twin finds their processes."""

BLOCK_END = "SAGEMAKER_CURRENT_CAPACITY_BLOCK_EXPIRATION_TIMESTAMP"
"""Milliseconds since the epoch at which the window of the job's training plan ends.

Source: SageMaker developer guide, "Training plans utilization for SageMaker training jobs".
"""


def block_end(end: datetime | None, clock: TwinClock) -> dict[str, str]:
    """Return the variable of a job on a training plan whose window ends then; none without an end.

    Programs compare it with the machine's clock, which a manual clock of the twin has nothing to do with:
    there it is the instant of the machine that leaves as much time as the window does now.
    """
    if end is None:
        return {}
    shown = end + (datetime.now(UTC) - clock.now()) if clock.manual else end
    return {BLOCK_END: str(round(shown.timestamp() * 1000))}


def container_environment(
    job: TrainingJob, layout: Layout, place: Place, *, region: str, given: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables of a container.

    ``given`` tells how to reach AWS. The request wins over it, and SageMaker's own names over both.
    """
    return {
        "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(layout.root),
        # What a job installs goes with its container, and not into the environment that this twin runs on.
        "PIP_TARGET": str(layout.packages),
        "PYTHONPATH": str(layout.packages),
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": "1",  # a job has its host to itself on SageMaker; here jobs share one
        **{name: os.environ[name] for name in _INHERITED if name in os.environ},
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        **given,
        **layout.localized_map(job.spec.environment),
        "TRAINING_JOB_NAME": job.name,
        "TRAINING_JOB_ARN": job.arn,
        "SAGEMAKER_TRAINING_MODULE": MODULE,
        **toolkit_variables(job, layout, place),
        "SM_CHECKPOINT_DIR": layout.told(layout.checkpoints),
        **_meeting(job.spec, place),
        MARK: str(layout.root),
    }


def _meeting(spec: TrainingSpec, place: Place) -> dict[str, str]:
    """Return the hosts' meeting point; torch's own names only for scripts: an entrypoint chooses its own."""
    port = str(place.master_port)
    torch_names = {"MASTER_ADDR": ADDRESS, "MASTER_PORT": port} if script_mode.is_script_mode(spec) else {}
    return {"SM_MASTER_ADDR": ADDRESS, "SM_MASTER_PORT": port} | torch_names
