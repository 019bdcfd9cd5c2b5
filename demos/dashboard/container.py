"""Runs in the demo's training jobs: prints metric lines and saves checkpoints until a file ends it.

Arguments: the folder of the job's orders. Runs as a script on a host of the twin.
"""

import itertools
import os
import sys
import time
from pathlib import Path

END = "end"
"""Order: be done."""
OUT_OF_MEMORY = "out-of-memory"
"""Order: fail as a GPU without memory does."""
STEPS_A_CHECKPOINT = 20
MOST_STEPS = 400
"""Lines enough for a curve; afterwards only the orders are looked for."""
_STEP_SECONDS = 0.02
_IDLE_SECONDS = 0.2
_OOM = (
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity "
    "of 22.06 GiB of which 1.10 GiB is free."
)


def main() -> int:
    orders = Path(sys.argv[1])
    checkpoint = Path(os.environ["SM_CHECKPOINT_DIR"]) / "step.txt"
    first = int(checkpoint.read_text(encoding="utf-8")) if checkpoint.exists() else 0
    print(f"resumed from step {first}" if first else "started from nothing", flush=True)
    for step in itertools.count(first + 1):
        if (orders / END).exists():
            break
        if (orders / OUT_OF_MEMORY).exists():
            print(_OOM, file=sys.stderr, flush=True)
            return 1
        if step <= first + MOST_STEPS:
            _train(step, checkpoint)
        time.sleep(_STEP_SECONDS if step <= first + MOST_STEPS else _IDLE_SECONDS)
    return 0


def _train(step: int, checkpoint: Path) -> None:
    print(f"metric step={step} loss={1.8 + 6 / (1 + step / 40):.6f} lr=3e-04 tok_s={9800 + step % 7 * 31}.0")
    if step % STEPS_A_CHECKPOINT == 0:
        sys.stdout.flush()
        checkpoint.parent.mkdir(parents=True, exist_ok=True)
        new = checkpoint.parent.with_name("step.new")
        new.write_text(str(step), encoding="utf-8")
        new.replace(checkpoint)


if __name__ == "__main__":
    raise SystemExit(main())
