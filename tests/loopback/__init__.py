"""Programs that may speak to this machine alone; whom else they ask for is recorded."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from local.twin_process import TwinProcess

PATIENCE_SECONDS = 240


def ran_alone(twin: TwinProcess, folder: Path, command: Sequence[str]) -> tuple[str, list[str]]:
    """What it printed, and the strangers it asked for. All that it knows of AWS is what the twin prints."""
    strangers = folder / "strangers"
    env = {name: text for name, text in os.environ.items() if not name.startswith(("AWS_", "SAGEMAKER_"))}
    env |= twin.environment() | {"LOOPBACK_STRANGERS": str(strangers), "HOME": str(folder)}
    env["PYTHONPATH"] = str(Path(__file__).parent)
    done = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    return said, strangers.read_text().split() if strangers.exists() else []
