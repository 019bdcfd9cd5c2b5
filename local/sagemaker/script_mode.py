"""Script mode, as the toolkit in SageMaker's framework images does it.

The SDK puts the script's name and the place of its archive among the hyperparameters, quoted as JSON. The
toolkit turns the others into arguments and runs the script under a shell that keeps SIGTERM to itself. Not
done here: installing a requirements.txt.
"""

import json
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from local.sagemaker.hosts import ADDRESS, Place
from local.sagemaker.s3_uri import S3Location
from local.sagemaker.spec import TrainingSpec

_PREFIX = "sagemaker_"
"""Hyperparameters that begin so are for the toolkit, not for the script."""
OF_TOOLKIT = (
    *("program", "submit_directory", "enable_cloudwatch_metrics", "region"),
    *("container_log_level", "job_name", "s3_output"),
)
"""The toolkit's own; the rest is for the framework's container."""
_NO_PREFIX = ("_tuning_objective_metric", "default_user_module_name")
"""Likewise for the toolkit. A trial of a tuning job has the first."""

# The shell has a trap, so that a SIGTERM neither ends it nor, as ignoring it would, is ignored in the script.
# `exit` keeps it from replacing itself by the script.
_KEEPS_SIGTERM = ("/bin/sh", "-c", 'trap : TERM; "$@"; exit $?', "train")


def is_script_mode(spec: TrainingSpec) -> bool:
    return not spec.entrypoint and source_archive(spec) is not None


def source_archive(spec: TrainingSpec) -> S3Location | None:
    """Return where the source code is; None if the job brings none."""
    values = framework_values(spec.hyperparameters)
    if "program" not in values or "submit_directory" not in values:
        return None
    try:
        return S3Location.parse(str(values["submit_directory"]))
    except ValueError:
        return None


def program(spec: TrainingSpec) -> str:
    return str(framework_values(spec.hyperparameters)["program"])


def log_level(spec: TrainingSpec) -> int:
    level = framework_values(spec.hyperparameters).get("container_log_level")
    return level if isinstance(level, int) else 20


def command(
    spec: TrainingSpec, hyperparameters: Mapping[str, Any], place: Place, *, processes: int
) -> list[str]:
    """Return the command that runs the script; ``processes`` is how many torchrun starts, if asked for."""
    script = program(spec)
    if framework_values(spec.hyperparameters).get("torch_distributed_enabled") is True:
        runner = ["torchrun", *_meeting(place), "--nproc_per_node", str(processes), script]
    elif PurePosixPath(script).suffix == ".py":
        runner = ["python", script]
    else:
        runner = ["/bin/sh", f"./{script}"]
    return [*_KEEPS_SIGTERM, *runner, *arguments(hyperparameters)]


def _meeting(place: Place) -> list[str]:
    """Return the options by which torchrun finds the other hosts."""
    if len(place.hosts) == 1:
        return ["--standalone", "--nnodes", "1"]
    return [
        *("--nnodes", str(len(place.hosts)), "--node_rank", str(place.rank)),
        *("--master_addr", ADDRESS, "--master_port", str(place.master_port)),
    ]


def user_hyperparameters(hyperparameters: Mapping[str, str]) -> dict[str, Any]:
    """Return the script's own hyperparameters by name, read as JSON if they are JSON."""
    return {
        name: decoded(value)
        for name, value in sorted(hyperparameters.items())
        if not name.startswith(_PREFIX) and name not in _NO_PREFIX
    }


def arguments(hyperparameters: Mapping[str, Any]) -> list[str]:
    """Return ``--name value`` for each; a name of one letter has one dash; a mapping is ``k=v,k=v``."""
    return [part for name, value in hyperparameters.items() for part in (_option(name), _text(value))]


def decoded(value: str) -> Any:  # noqa: ANN401  any JSON value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def framework_values(hyperparameters: Mapping[str, str]) -> dict[str, Any]:
    """Return the hyperparameters for the toolkit and the framework's container, without their prefix."""
    return {
        name.removeprefix(_PREFIX): decoded(value)
        for name, value in hyperparameters.items()
        if name.startswith(_PREFIX)
    }


def _option(name: str) -> str:
    return f"--{name}" if len(name) > 1 else f"-{name}"


def _text(value: Any) -> str:  # noqa: ANN401  any JSON value
    if isinstance(value, dict):
        return ",".join(f"{key}={inner}" for key, inner in sorted(value.items()))
    return "" if value is None else str(value)
