"""Where a job's directories are, and what of its environment must be set before torch is imported."""

from collections.abc import Mapping
from pathlib import Path

from training.config.choices import DebugLevel, DeviceName
from training.errors import ConfigError

CHANNEL = "channel:"
FLIGHT_RECORDER = "flight-recorder-"
"""How the names of dumps begin; the rank follows."""
_CHANNEL_VARIABLE = "SM_CHANNEL_"
_FLIGHT_RECORDER_ENTRIES = "2000"
"""The last collectives of each rank; a few hundred bytes each."""
_DEFAULT_OUTPUT_DATA_DIR = "/opt/ml/output/data"


def directory_of(source: str, env: Mapping[str, str], *, option: str) -> Path:
    """Of ``channel:NAME`` the channel's directory; anything else is a directory itself.

    Raises:
        ConfigError: The job has no such channel; ``option`` is the one that named it.
    """
    if not source.startswith(CHANNEL):
        return Path(source)
    name = source.removeprefix(CHANNEL)
    # SageMaker's toolkit keeps a hyphen; launch.py sets both, as no variable of a shell has hyphens.
    written = (name.upper(), name.upper().replace("-", "_"))
    found = next((env[key] for one in written if (key := _CHANNEL_VARIABLE + one) in env), None)
    if found is None:
        names = {key.removeprefix(_CHANNEL_VARIABLE) for key in env if key.startswith(_CHANNEL_VARIABLE)}
        again = {one.replace("-", "_") for one in names if "-" in one}
        there = [one.lower() for one in sorted(names - again)]
        raise ConfigError(
            [f"{option} names channel {name!r}, but the job has {', '.join(there) or 'no channels'}"]
        )
    return Path(found)


def output_data_dir(env: Mapping[str, str]) -> Path:
    """What is not part of the result goes there; SageMaker packs it as output.tar.gz."""
    return Path(env.get("SM_OUTPUT_DATA_DIR", _DEFAULT_OUTPUT_DATA_DIR))


def flight_recorder(env: Mapping[str, str]) -> str:
    """Where its dumps go, without the rank at the end."""
    return f"{output_data_dir(env)}/{FLIGHT_RECORDER}"


def device_variables(device: DeviceName, env: Mapping[str, str]) -> dict[str, str]:
    """Likewise: weights in bf16 keep small updates by chance where nothing else does."""
    name = "NEURON_RT_STOCHASTIC_ROUNDING_EN"
    return {name: "1"} if device is DeviceName.NEURON and name not in env else {}


def debug_variables(level: DebugLevel, env: Mapping[str, str]) -> dict[str, str]:
    """What must be set before torch is imported; a variable that ``env`` has is left alone."""
    if level is DebugLevel.OFF:
        return {}
    dump = flight_recorder(env)
    wanted = {
        "TORCH_DISTRIBUTED_DEBUG": level.name,
        "TORCH_CPP_LOG_LEVEL": "INFO",
        "TORCH_SHOW_CPP_STACKTRACES": "1",
        "TORCH_FR_BUFFER_SIZE": _FLIGHT_RECORDER_ENTRIES,
        "TORCH_FR_DUMP_TEMP_FILE": dump,
        # As they are called before PyTorch 2.9, and what makes NCCL dump them.
        "TORCH_NCCL_TRACE_BUFFER_SIZE": _FLIGHT_RECORDER_ENTRIES,
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": dump,
        "TORCH_NCCL_DUMP_ON_TIMEOUT": "1",
    }
    return {name: text for name, text in wanted.items() if name not in env}
