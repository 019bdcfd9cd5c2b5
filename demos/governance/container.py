"""Runs in the demo's training jobs: no training, but everything a control plane sees of it.

Arguments: a folder in which the demo leaves its orders as files. Runs as a script on a host of the twin.
"""

import hashlib
import itertools
import os
import sys
import time
from pathlib import Path

CHECKPOINT = "checkpoint.txt"
END = "end"
"""Order: be done."""
NETWORK_FAILS = "network-fails"
"""Order: say what NCCL says when a host is lost."""
WATCHDOG = (
    "[rank1]:[E ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=41, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600014 "
    "milliseconds before timing out."
)
LOOKS_A_CHECKPOINT = 5
_LOOK_SECONDS = 0.2


def main() -> None:
    orders = Path(sys.argv[1])
    checkpoint = Path(os.environ["SM_CHECKPOINT_DIR"]) / CHECKPOINT
    print(_begin(checkpoint), flush=True)
    has_failed = False
    for look in itertools.count():
        if (orders / END).exists():
            break
        if (orders / NETWORK_FAILS).exists() and not has_failed:
            print(WATCHDOG, flush=True)
            has_failed = True
        if look % LOOKS_A_CHECKPOINT == 0 and not has_failed:
            _save(checkpoint, look)
        time.sleep(_LOOK_SECONDS)
    print("done", flush=True)


def _begin(checkpoint: Path) -> str:
    if not checkpoint.exists():
        return "started from nothing"
    return f"resumed from {checkpoint.name} sha256={hashlib.sha256(checkpoint.read_bytes()).hexdigest()}"


def _save(checkpoint: Path, look: int) -> None:
    """Save whole or not at all: what is there may be copied to S3 at any time."""
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    new = checkpoint.parent.with_name("checkpoint.new")
    new.write_text(f"look {look} of process {os.getpid()}\n", encoding="utf-8")
    new.replace(checkpoint)


if __name__ == "__main__":
    main()
