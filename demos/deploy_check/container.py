"""Runs in the training jobs of the check: saves one checkpoint, then waits for the order to end.

Arguments: the folder of the job's orders. Runs as a script on a host of the twin. It saves once: SageMaker's
copy of a file that changes all the time is late.
"""

import hashlib
import os
import sys
import time
from pathlib import Path

CHECKPOINT = "checkpoint.txt"
END = "end"
"""Order: be done."""
_LOOK_SECONDS = 0.2


def main() -> None:
    order = Path(sys.argv[1]) / END
    checkpoint = Path(os.environ["SM_CHECKPOINT_DIR"]) / CHECKPOINT
    if checkpoint.exists():
        digest = hashlib.sha256(checkpoint.read_bytes()).hexdigest()
        print(f"resumed from {CHECKPOINT} sha256={digest}", flush=True)
    else:
        checkpoint.parent.mkdir(parents=True, exist_ok=True)
        checkpoint.write_text(f"made by process {os.getpid()}\n", encoding="utf-8")
    while not order.exists():
        time.sleep(_LOOK_SECONDS)


if __name__ == "__main__":
    main()
