"""train.py, but in a resumed attempt one rank reads the data of the next step. The proof must find out."""

import os
import sys
from pathlib import Path

from torch import Tensor

from training import train
from training.data.batches import Batches

at = Batches.at
is_resumed = (Path(os.environ["SM_CHECKPOINT_DIR"]) / "status.json").exists()


def shifted(self: Batches, step: int) -> tuple[Tensor, ...]:
    return at(self, step + 1 if is_resumed and os.environ["RANK"] == "1" else step)


Batches.at = shifted  # type: ignore[method-assign]  # that is the spoiling
sys.exit(train.main(sys.argv[1:]))
