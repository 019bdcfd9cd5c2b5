"""The variables that SageMaker's training toolkit sets in a container, SM_ and more.

Source: sagemaker-training, environment.py and mapping.py; and the driver of the SDK v3. Values are texts as
they are, nothing where there is none, else JSON without spaces.
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from local.sagemaker import script_mode
from local.sagemaker.hosts import NETWORK_INTERFACE, Place
from local.sagemaker.inputs import channels_of, resource_config
from local.sagemaker.jobs import TrainingJob
from local.sagemaker.layout import Layout
from local.sagemaker.spec import Channel, TrainingSpec

MODULE = "sagemaker_pytorch_container.training:main"
_ON_ITS_OWN = ("channels", "hps", "framework_params", "host_count", "current_host_rank")
"""Values that are variables, and no part of SM_TRAINING_ENV under their name."""


def toolkit_variables(job: TrainingJob, layout: Layout, place: Place) -> dict[str, str]:
    channels = channels_of(job.spec, place)
    hyperparameters = script_mode.user_hyperparameters(layout.localized_map(job.spec.hyperparameters))
    paths = {channel.name: layout.told(layout.channel(channel.name)) for channel in channels}
    values = _folders(layout) | _cluster(place) | _channels(channels) | _program(job.spec, layout)
    values["hps"] = hyperparameters
    values["training_env"] = {name: value for name, value in values.items() if name not in _ON_ITS_OWN} | {
        "hyperparameters": hyperparameters,
        "channel_input_dirs": paths,
        "additional_framework_parameters": values["framework_params"],
        "job_name": job.name,
        "master_hostname": place.names[0],
        "is_master": place.rank == 0,
    }
    values["user_args"] = script_mode.arguments(hyperparameters)
    named = {f"channel_{name}": path for name, path in paths.items()}
    named |= {f"hp_{name}": value for name, value in hyperparameters.items()}
    # With a hyphen, as the toolkit has it, and without, as a shell can read it.
    values |= named | {name.replace("-", "_"): value for name, value in named.items()}
    return {f"SM_{name.upper()}": _as_variable(value) for name, value in values.items()}


def gpu_count() -> int:
    return len(list(Path("/dev").glob("nvidia[0-9]*")))


def _folders(layout: Layout) -> dict[str, Any]:
    folders = {
        "model_dir": layout.model,
        "input_dir": layout.input,
        "input_config_dir": layout.config,
        "input_data_dir": layout.input / "data",
        "output_dir": layout.output,
        "output_data_dir": layout.output_data,
        "output_intermediate_dir": layout.output / "intermediate",
        "output_failure": layout.failure,
    }
    return {name: layout.told(folder) for name, folder in folders.items()}


def _cluster(place: Place) -> dict[str, Any]:
    """Return facts of the cluster; each host has the accelerators and processors of this machine."""
    group, groups = place.host.group, place.groups
    return {
        "hosts": place.names,
        "current_host": place.host.name,
        "current_host_rank": place.rank,
        "host_count": len(place.hosts),
        "network_interface_name": NETWORK_INTERFACE,
        "current_instance_type": group.instance_type,
        "current_instance_group": group.name,
        "current_instance_group_hosts": groups[group.name]["hosts"],
        "instance_groups": list(groups),
        "instance_groups_dict": groups,
        "is_hetero": len(groups) > 1,
        "resource_config": resource_config(place),
        "num_cpus": os.cpu_count() or 1,
        "num_gpus": gpu_count(),
        "num_neurons": 0,
    }


def _channels(channels: Sequence[Channel]) -> dict[str, Any]:
    return {
        "channels": sorted(channel.name for channel in channels),
        "input_data_config": {channel.name: dict(channel.settings) for channel in channels},
    }


def _program(spec: TrainingSpec, layout: Layout) -> dict[str, Any]:
    values = script_mode.framework_values(layout.localized_map(spec.hyperparameters))
    program = str(values.get("program") or "") or None
    framework_params = {
        f"sagemaker_{name}": value for name, value in values.items() if name not in script_mode.OF_TOOLKIT
    }
    return {
        "user_entry_point": program,
        "module_name": program and program.removesuffix(".py"),
        "module_dir": values.get("submit_directory", layout.told(layout.code)),
        "log_level": script_mode.log_level(spec),
        "framework_module": MODULE,
        "framework_params": framework_params,
        "distribution_instance_groups": framework_params.get("sagemaker_distribution_instance_groups", []),
    }


def _as_variable(value: object) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
