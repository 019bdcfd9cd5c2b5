"""Stands in for train.py where only starting, watching and killing is tested: it counts, in no time.

It keeps its step every fifth step, and when it is asked to stop. Each rank leaves its process id in a file of
its attempt, `pids-*`, and no rank counts before all of them are there.
"""

import json
import os
import signal
import sys
from pathlib import Path
from threading import Event

_PACE_SECONDS = 0.02


def main() -> int:
    options = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=True))
    asked = Event()
    signal.signal(signal.SIGTERM, lambda *_: asked.set())
    place = Path(os.environ["SM_CHECKPOINT_DIR"])
    place.mkdir(exist_ok=True)
    pids = place / f"pids-{os.getppid()}"
    with pids.open("a") as file:
        file.write(f"{os.getpid()}\n")
    if options["--fails"].lower() == "true":
        sys.exit("no such data")
    while not asked.is_set() and len(pids.read_text().splitlines()) < int(os.environ["WORLD_SIZE"]):
        asked.wait(_PACE_SECONDS)
    saved = place / "saved"
    for step in range(int(saved.read_text() if saved.exists() else "0") + 1, int(options["--steps"]) + 1):
        if os.environ["RANK"] == "0":
            _tell(step, Path(options["--metrics_file"]))
            if step % 5 == 0 or asked.is_set():
                saved.write_text(str(step))
        if asked.wait(_PACE_SECONDS):
            if os.environ["RANK"] == "0":
                saved.write_text(str(step))
            return 143
    return 0


def _tell(step: int, path: Path) -> None:
    loss = 5 - step / 3
    with path.open("a") as file:
        file.write(json.dumps({"step": step, "loss_hex": loss.hex()}) + "\n")
    print(f"metric step={step} loss={loss:.9f}", flush=True)  # noqa: T201  the log is its output


sys.exit(main())
