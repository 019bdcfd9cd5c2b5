"""Runs in training jobs that wait for orders: no training, but all that a control plane sees of one.

Arguments: the folder in which the demo leaves its orders as files, and what is done until one comes. It runs
as a script on a host of the twin, so it needs the standard library alone.
"""

import hashlib
import itertools
import os
import sys
import time
from pathlib import Path

CHECKPOINT = "checkpoint.txt"
END, SAY, FAIL = "end", "say", "fail"
"""Orders: be done; print the text of the file and save no more; print it as an error and fail."""
SAVES_ONCE, SAVES, TRAINS = "saves-once", "saves", "trains"
"""Kinds of work. SageMaker copies a file late if it changes all the time, so one kind saves once."""
STEPS_A_CHECKPOINT = {SAVES: 5, TRAINS: 20}
MOST_STEPS = 400
"""Lines enough for a curve; afterwards only the orders are looked for."""
_LOOK_SECONDS = 0.2
_STEP_SECONDS = 0.02


def main() -> int:
    orders, work = Path(sys.argv[1]), sys.argv[2]
    checkpoint = Path(os.environ["SM_CHECKPOINT_DIR"]) / CHECKPOINT
    begin, line = _begin(checkpoint)
    print(line, flush=True)
    says, trains = False, work == TRAINS
    for step in itertools.count(begin + 1):
        if (orders / END).exists():
            break
        if (orders / FAIL).exists():
            print((orders / FAIL).read_text(encoding="utf-8"), file=sys.stderr, flush=True)
            return 1
        if (orders / SAY).exists() and not says:
            print((orders / SAY).read_text(encoding="utf-8"), flush=True)
            says = True
        is_at_work = not says and (not trains or step <= begin + MOST_STEPS)
        if is_at_work and trains:
            _print_metrics(step)
        if is_at_work and _is_saved(step, work):
            _save(checkpoint, step)
        time.sleep(_STEP_SECONDS if is_at_work and trains else _LOOK_SECONDS)
    return 0


def _begin(checkpoint: Path) -> tuple[int, str]:
    """Return the step that is done, and the line that says where it comes from."""
    if not checkpoint.exists():
        return 0, "started from nothing"
    content = checkpoint.read_bytes()
    return int(content.split()[0]), f"resumed from {CHECKPOINT} sha256={hashlib.sha256(content).hexdigest()}"


def _is_saved(step: int, work: str) -> bool:
    return step == 1 if work == SAVES_ONCE else step % STEPS_A_CHECKPOINT[work] == 0


def _print_metrics(step: int) -> None:
    print(f"metric step={step} loss={1.8 + 6 / (1 + step / 40):.6f} lr=3e-04 tok_s={9800 + step % 7 * 31}.0")


def _save(checkpoint: Path, step: int) -> None:
    """Save whole or not at all: what is there may be copied to S3 at any time."""
    sys.stdout.flush()
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    new = checkpoint.parent.with_name("checkpoint.new")
    new.write_text(f"{step} by process {os.getpid()}\n", encoding="utf-8")
    new.replace(checkpoint)


if __name__ == "__main__":
    raise SystemExit(main())
