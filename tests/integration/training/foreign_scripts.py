"""The scripts of docs/training/scripts.md, as jobs have them: under the launcher, adapters beside."""

import re
import shutil
from pathlib import Path

from trainmaster_client.cli.training_code import preemptible_files

from tests.integration.training.launches import PROGRAM, Ended, Host

SCRIPTS = ("hf_trainer", "lightning_trainer", "accelerate_loop")
_EXAMPLES = PROGRAM.parent / "docs/examples/training"
_LOSS = re.compile(r"step=(\d+) loss=(\S+)")


def host_of(script: str, base: Path, **env: str) -> Host:
    text = (_EXAMPLES / f"{script}.py").read_text(encoding="utf-8")
    host = Host.with_script(base, text, LAUNCH_STOP_SECONDS="60", HF_HUB_OFFLINE="1", **env)
    for name, file in preemptible_files(PROGRAM.parent).items():
        (host.code / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROGRAM.parent / file, host.code / name)
    return host


def losses(done: Ended) -> dict[int, str]:
    """As they were printed: to the last digit."""
    return {int(match[1]): match[2] for line in done.lines if (match := _LOSS.fullmatch(line))}
