"""Runs in the tasks of a sweep of the demos: a loss that follows from ``lr`` and ``batch``, and no training.

A batch that would not fit into the memory of a GPU fails as it would there. It runs as a script on a host of
the twin, so it needs the standard library alone.
"""

import json
import math
import os
import sys

STEPS = 200
BEST_LR = 3e-4
LARGEST_BATCH = 32
OUT_OF_MEMORY = (
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity "
    "of 22.06 GiB of which 1.10 GiB is free."
)


def main() -> int:
    values = json.loads(os.environ["SM_HPS"])
    rate, batch = float(values["lr"]), int(values["batch"])
    if batch > LARGEST_BATCH and rate > BEST_LR:
        print(OUT_OF_MEMORY, file=sys.stderr, flush=True)
        return 1
    for step in range(10, STEPS + 1, 10):
        print(
            f"metric step={step} loss={loss(rate, batch, step):.4f} tok_s={9000 + 20 * batch}.0", flush=True
        )
    return 0


def loss(rate: float, batch: int, step: int) -> float:
    off = math.log10(rate / BEST_LR) ** 2 + 0.1 * math.log2(batch / 16) ** 2
    return 2.0 + 0.4 * off + 4 / (1 + step / 20)


if __name__ == "__main__":
    raise SystemExit(main())
