"""The environment variables of a container.

Code in the container should take its paths from here or from its hyperparameters, with /opt/ml as the
default. ``SM_CHECKPOINT_DIR`` is the twin's own: no such variable exists on SageMaker, where the default
/opt/ml/checkpoints is right; here it stands for that path. ``SM_MASTER_ADDR`` and ``SM_MASTER_PORT`` are
where the hosts of a job can meet. SageMaker itself sets neither: where they are missing, the first host's
name is the address and any port will do.
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from local.sagemaker import script_mode
from local.sagemaker.hosts import ADDRESS, NETWORK_INTERFACE, Place
from local.sagemaker.inputs import channels_of, resource_config
from local.sagemaker.jobs import TrainingJob
from local.sagemaker.layout import Layout
from local.sagemaker.spec import Channel, TrainingSpec

_INHERITED = ("LD_LIBRARY_PATH", "TMPDIR", "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY")
"""Without the first two the interpreter may not start here, or find no place for temporary files. What the
others hide of this machine's processor from torch, they hide in containers, too."""

MARK = "TRAINMASTER_TWIN_CONTAINER"
"""A variable whose value no two containers share, by which the twin finds their processes."""


def container_environment(
    job: TrainingJob, layout: Layout, place: Place, *, region: str, given: Mapping[str, str]
) -> dict[str, str]:
    """``given`` is how to reach AWS; what the request says wins over it, SageMaker's own names over both."""
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
        **_folders(layout),
        **_cluster(place),
        **_channels(channels_of(job.spec, place), layout),
        **_hyperparameters(job.spec, layout),
        **_script(job.spec, place),
        MARK: str(layout.root),
    }


def gpu_count() -> int:
    return len(list(Path("/dev").glob("nvidia[0-9]*")))


def _folders(layout: Layout) -> dict[str, str]:
    return {
        "SM_MODEL_DIR": layout.told(layout.model),
        "SM_INPUT_DIR": layout.told(layout.input),
        "SM_INPUT_CONFIG_DIR": layout.told(layout.config),
        "SM_OUTPUT_DIR": layout.told(layout.output),
        "SM_OUTPUT_DATA_DIR": layout.told(layout.output_data),
        "SM_CHECKPOINT_DIR": layout.told(layout.checkpoints),
    }


def _cluster(place: Place) -> dict[str, str]:
    """Each host has the accelerators and processors of this machine."""
    group, groups = place.host.group, place.groups
    return {
        "SM_HOSTS": json.dumps(place.names),
        "SM_CURRENT_HOST": place.host.name,
        "SM_CURRENT_HOST_RANK": str(place.rank),
        "SM_HOST_COUNT": str(len(place.hosts)),
        "SM_MASTER_ADDR": ADDRESS,
        "SM_MASTER_PORT": str(place.master_port),
        "SM_CURRENT_INSTANCE_TYPE": group.instance_type,
        "SM_CURRENT_INSTANCE_GROUP": group.name,
        "SM_CURRENT_INSTANCE_GROUP_HOSTS": json.dumps(groups[group.name]["hosts"]),
        "SM_INSTANCE_GROUPS": json.dumps(list(groups)),
        "SM_INSTANCE_GROUPS_DICT": json.dumps(groups),
        "SM_IS_HETERO": json.dumps(len(groups) > 1),
        "SM_NETWORK_INTERFACE_NAME": NETWORK_INTERFACE,
        "SM_NUM_GPUS": str(gpu_count()),
        "SM_NUM_CPUS": str(os.cpu_count() or 1),
        "SM_RESOURCE_CONFIG": json.dumps(resource_config(place)),
    }


def _channels(channels: Sequence[Channel], layout: Layout) -> dict[str, str]:
    names = sorted(channel.name for channel in channels)
    return {
        "SM_CHANNELS": json.dumps(names),
        "SM_INPUT_DATA_CONFIG": json.dumps({one.name: dict(one.settings) for one in channels}),
        **{f"SM_CHANNEL_{_upper(name)}": layout.told(layout.channel(name)) for name in names},
    }


def _hyperparameters(spec: TrainingSpec, layout: Layout) -> dict[str, str]:
    values = script_mode.user_hyperparameters(layout.localized_map(spec.hyperparameters))
    return {
        "SM_HPS": json.dumps(values),
        "SM_USER_ARGS": json.dumps(script_mode.arguments(values)),
        **{f"SM_HP_{_upper(name)}": _plain(value) for name, value in values.items()},
    }


def _script(spec: TrainingSpec, place: Place) -> dict[str, str]:
    variables = {
        "SM_LOG_LEVEL": str(script_mode.log_level(spec)),
        "SM_FRAMEWORK_MODULE": "sagemaker_pytorch_container.training:main",
    }
    archive = script_mode.source_archive(spec)
    if archive is None or not script_mode.is_script_mode(spec):
        return variables
    script = script_mode.program(spec)
    return variables | {
        "MASTER_ADDR": ADDRESS,
        "MASTER_PORT": str(place.master_port),
        "SM_MODULE_DIR": archive.uri,
        "SM_MODULE_NAME": script.removesuffix(".py"),
        "SM_USER_ENTRY_POINT": script,
    }


def _upper(name: str) -> str:
    return name.upper().replace("-", "_")


def _plain(value: Any) -> str:  # noqa: ANN401  any JSON value
    return value if isinstance(value, str) else json.dumps(value)
