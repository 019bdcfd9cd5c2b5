"""What PyTorch tells about its collectives. No torch here: it reads these variables when it is loaded."""

from collections.abc import Mapping

from training.choices import DebugLevel

_FLIGHT_RECORDER_ENTRIES = "2000"
"""The last collectives of each rank; a few hundred bytes each."""
_DEFAULT_OUTPUT_DATA_DIR = "/opt/ml/output/data"


def debug_variables(level: DebugLevel, env: Mapping[str, str]) -> dict[str, str]:
    """What must be set before torch is imported; a variable that ``env`` has is left alone."""
    if level is DebugLevel.OFF:
        return {}
    dump = f"{env.get('SM_OUTPUT_DATA_DIR', _DEFAULT_OUTPUT_DATA_DIR)}/flight-recorder-"  # + rank
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
