"""The program a job runs: `python train.py --preset tiny --steps 60`, alone, under torchrun or on SageMaker.

SageMaker's script mode unpacks this folder under another name and starts this file in it. The rest of
the program is the package `training`, so as a script this file first gives its folder that name.
"""

import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path


def _name_this_folder_training() -> None:
    folder = Path(__file__).resolve().parent
    spec = importlib.util.spec_from_file_location(
        "training", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["training"] = package
    spec.loader.exec_module(package)


def main(arguments: Sequence[str]) -> int:
    """Run one attempt, and return the exit code."""
    # Imported here: the package has its name by now, and wrong options fail before torch is loaded.
    from training.config import TrainConfig, read_config  # noqa: PLC0415
    from training.config.contradictions import refuse_unsupported_torch  # noqa: PLC0415
    from training.config.environment import debug_variables, device_variables, flight_recorder  # noqa: PLC0415
    from training.config.reader import described  # noqa: PLC0415
    from training.errors import report_failure  # noqa: PLC0415
    from training.flight import answer  # noqa: PLC0415
    from training.preemptible import CheckpointError  # noqa: PLC0415
    from training.preemptible.preempt import StopRequest  # noqa: PLC0415

    if "--help" in arguments:
        print(described(TrainConfig))
        return 0
    try:
        config = read_config(arguments, os.environ)
        refuse_unsupported_torch(config)
        # Jobs that share a machine must not fight for its cores. Read when torch is imported.
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        os.environ.update(debug_variables(config.debug, os.environ))
        os.environ.update(device_variables(config.device, os.environ))
        answer(config.debug, flight_recorder(os.environ))
        if config.cache_dir:
            os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", f"{config.cache_dir}/torchinductor")
        with StopRequest(seconds=config.stop_seconds) as stop:
            from training.job import run  # noqa: PLC0415  torch takes seconds, and the signal may come in them

            return run(config, os.environ, stop)
    except Exception as error:  # noqa: BLE001  the bulkhead: whatever happened, SageMaker gets to know why
        report_failure(error, os.environ, plain=(CheckpointError,))
        return 1


if not __package__:
    _name_this_folder_training()

if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    if code:
        # A save in flight may wait for ranks that are gone; to end the interpreter in order would abort it.
        os._exit(code)
