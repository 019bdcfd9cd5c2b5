"""The folder is a package here and SageMaker's code directory there."""

import subprocess
import sys
from pathlib import Path

import training

_FOLDER = Path(training.__file__).parent


def test_no_module_hides_one_of_pythons_own() -> None:
    """As a script's folder it comes first on the path: a `random.py` here would break torch."""
    names = {path.stem for path in _FOLDER.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert not names & sys.stdlib_module_names


def test_what_clients_and_bad_options_need_does_not_load_torch() -> None:
    code = (
        "import sys, training.metrics, training.config, training.preemptible.preempt, training.train\n"
        "sys.exit('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=_FOLDER.parent, check=False)
    assert done.returncode == 0
