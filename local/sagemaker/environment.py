"""The environment variables of a container.

Code in the container should take its paths from here or from its hyperparameters, with /opt/ml as the
default. ``SM_CHECKPOINT_DIR`` is the twin's own: no such variable exists on SageMaker, where the default
/opt/ml/checkpoints is right; here it stands for that path.
"""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from local.sagemaker import script_mode
from local.sagemaker.inputs import HOST, NETWORK_INTERFACE, resource_config
from local.sagemaker.jobs import TrainingJob
from local.sagemaker.layout import Layout
from local.sagemaker.spec import TrainingSpec

_INHERITED = ("LD_LIBRARY_PATH", "TMPDIR")
"""Without these the interpreter may not start here, or find no place for temporary files."""

MARK = "SM_MODEL_DIR"
"""A variable whose value no two containers share."""


def container_environment(
    job: TrainingJob, layout: Layout, *, region: str, given: Mapping[str, str]
) -> dict[str, str]:
    """``given`` is how to reach AWS; what the request says wins over it, SageMaker's own names over both."""
    return {
        "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(layout.root),
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        **{name: os.environ[name] for name in _INHERITED if name in os.environ},
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        **given,
        **layout.localized_map(job.spec.environment),
        "TRAINING_JOB_NAME": job.name,
        "TRAINING_JOB_ARN": job.arn,
        **_folders(layout),
        **_cluster(job.spec),
        **_channels(job.spec, layout),
        **_hyperparameters(job.spec, layout),
        **_script(job.spec),
    }


def gpu_count() -> int:
    return len(list(Path("/dev").glob("nvidia[0-9]*")))


def _folders(layout: Layout) -> dict[str, str]:
    return {
        MARK: str(layout.model),
        "SM_INPUT_DIR": str(layout.input),
        "SM_INPUT_CONFIG_DIR": str(layout.config),
        "SM_OUTPUT_DIR": str(layout.output),
        "SM_OUTPUT_DATA_DIR": str(layout.output_data),
        "SM_CHECKPOINT_DIR": str(layout.checkpoints),
    }


def _cluster(spec: TrainingSpec) -> dict[str, str]:
    """What is there: one host, and the accelerators and processors of this machine."""
    group = spec.groups[0]
    return {
        "SM_HOSTS": json.dumps([HOST]),
        "SM_CURRENT_HOST": HOST,
        "SM_HOST_COUNT": "1",
        "SM_CURRENT_INSTANCE_TYPE": group.instance_type,
        "SM_CURRENT_INSTANCE_GROUP": group.name,
        "SM_NETWORK_INTERFACE_NAME": NETWORK_INTERFACE,
        "SM_NUM_GPUS": str(gpu_count()),
        "SM_NUM_CPUS": str(os.cpu_count() or 1),
        "SM_RESOURCE_CONFIG": json.dumps(resource_config(group)),
    }


def _channels(spec: TrainingSpec, layout: Layout) -> dict[str, str]:
    names = sorted(channel.name for channel in spec.channels)
    return {
        "SM_CHANNELS": json.dumps(names),
        "SM_INPUT_DATA_CONFIG": json.dumps({one.name: dict(one.settings) for one in spec.channels}),
        **{f"SM_CHANNEL_{_upper(name)}": str(layout.channel(name)) for name in names},
    }


def _hyperparameters(spec: TrainingSpec, layout: Layout) -> dict[str, str]:
    values = script_mode.user_hyperparameters(layout.localized_map(spec.hyperparameters))
    return {
        "SM_HPS": json.dumps(values),
        "SM_USER_ARGS": json.dumps(script_mode.arguments(values)),
        **{f"SM_HP_{_upper(name)}": _plain(value) for name, value in values.items()},
    }


def _script(spec: TrainingSpec) -> dict[str, str]:
    variables = {
        "SM_LOG_LEVEL": str(script_mode.log_level(spec)),
        "SM_FRAMEWORK_MODULE": "sagemaker_pytorch_container.training:main",
    }
    archive = script_mode.source_archive(spec)
    if archive is None:
        return variables
    script = script_mode.program(spec)
    return variables | {
        "SM_MODULE_DIR": archive.uri,
        "SM_MODULE_NAME": script.removesuffix(".py"),
        "SM_USER_ENTRY_POINT": script,
    }


def _upper(name: str) -> str:
    return name.upper().replace("-", "_")


def _plain(value: Any) -> str:  # noqa: ANN401  any JSON value
    return value if isinstance(value, str) else json.dumps(value)
