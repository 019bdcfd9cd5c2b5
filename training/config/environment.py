"""Directories of a job, and the environment variables that must be set before torch is imported."""

from collections.abc import Mapping
from pathlib import Path

from training.config.choices import DebugLevel, DeviceName
from training.config.fields import note_once
from training.config.neuron_flags import VARIABLE as FLAGS
from training.config.neuron_flags import compiler_flags
from training.errors import ConfigError

CHANNEL = "channel:"
FLIGHT_RECORDER = "flight-recorder-"
"""Beginning of the names of NCCL's dumps; the rank follows."""
_CHANNEL_VARIABLE = "SM_CHANNEL_"
_FLIGHT_RECORDER_ENTRIES = "2000"
"""Number of the last collectives that each rank remembers; each takes a few hundred bytes."""
_DEFAULT_OUTPUT_DATA_DIR = "/opt/ml/output/data"


def directory_of(source: str, env: Mapping[str, str], *, option: str) -> Path:
    """Return the directory of ``channel:NAME``; any other source is a directory itself.

    Args:
        source: Value of the option.
        env: Environment, which has the directories of the job's channels.
        option: Name of the option, for messages.

    Raises:
        ConfigError: The job has no such channel.
    """
    if not source.startswith(CHANNEL):
        return Path(source)
    name = source.removeprefix(CHANNEL)
    # SageMaker's toolkit keeps a hyphen; launch.py sets both, as no variable of a shell has hyphens.
    written = (name.upper(), name.upper().replace("-", "_"))
    directory = next((env[key] for spelling in written if (key := _CHANNEL_VARIABLE + spelling) in env), None)
    if directory is None:
        names = {key.removeprefix(_CHANNEL_VARIABLE) for key in env if key.startswith(_CHANNEL_VARIABLE)}
        again = {channel.replace("-", "_") for channel in names if "-" in channel}
        there = [channel.lower() for channel in sorted(names - again)]
        raise ConfigError(
            [f"{option} names channel {name!r}, but the job has {', '.join(there) or 'no channels'}"]
        )
    return Path(directory)


def output_data_dir(env: Mapping[str, str]) -> Path:
    """Return the directory of files beside the result; SageMaker packs it as output.tar.gz."""
    return Path(env.get("SM_OUTPUT_DATA_DIR", _DEFAULT_OUTPUT_DATA_DIR))


def flight_recorder(env: Mapping[str, str]) -> str:
    """Return the path to which each rank dumps its last collectives, without the rank at its end."""
    return f"{output_data_dir(env)}/{FLIGHT_RECORDER}"


def device_variables(device: DeviceName, env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables to set for a device; one that ``env`` has is left alone.

    On Trainium weights in bf16 round at random, which keeps small updates where nothing else does, and the
    compiler learns that the model is a transformer, beside the flags that the job has for it.

    Raises:
        ConfigError: A flag of the compiler has a value that it refuses.
    """
    if device is not DeviceName.NEURON:
        return {}
    name = "NEURON_RT_STOCHASTIC_ROUNDING_EN"
    flags, notes = compiler_flags(env.get(FLAGS, ""))
    for note in notes:
        note_once(note)
    return ({} if name in env else {name: "1"}) | {FLAGS: flags}


def debug_variables(level: DebugLevel, env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables to set for a debug level; one that ``env`` has is left alone."""
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
