"""``python -m tools.training.verify DIRECTORY``: reads all checkpoints in it, and says which are whole.

Needs neither the model nor the ranks that wrote them; nothing is loaded, changed or run.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from training.preemptible.checkpoint.hashes import DamagedError, has_hashes, verify_items
from training.preemptible.checkpoint.local_store import LocalStore
from training.preemptible.checkpoint.manifest import INDEX_COPY, Finding, Torn, Whole, findings, view_of
from training.preemptible.checkpoint.shards import verified_index

_EXIT_TORN = 1


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.training.verify", description=__doc__)
    parser.add_argument("directory", type=Path, help="a checkpoint_dir, or a copy of one from S3")
    checkpoints = verdicts(parser.parse_args(arguments).directory)
    for checkpoint in checkpoints:
        print(f"{checkpoint.name}  {described(checkpoint)}")
    if not checkpoints:
        print("there are no checkpoints")
    return (
        0 if checkpoints and all(isinstance(checkpoint, Whole) for checkpoint in checkpoints) else _EXIT_TORN
    )


def described(checkpoint: Finding) -> str:
    if not isinstance(checkpoint, Whole):
        return f"{'torn' if isinstance(checkpoint, Torn) else 'refused'}: {checkpoint.reason}"
    hashes = checkpoint.manifest.hashes
    return f"whole, by the {hashes['algorithm']} of every item" if hashes else "of the right sizes, no hashes"


def verdicts(directory: Path) -> list[Finding]:
    """Verify all checkpoints, the newest first. Every byte of the shards is read."""
    checkpoints = findings({str(directory): view_of(LocalStore(directory))})
    return [
        _verified(directory, checkpoint) if isinstance(checkpoint, Whole) else checkpoint
        for checkpoint in checkpoints
    ]


def _verified(directory: Path, checkpoint: Whole) -> Finding:
    folder = directory / checkpoint.name
    try:
        index = verified_index((folder / INDEX_COPY).read_bytes(), checkpoint.manifest)
        if has_hashes(index):
            verify_items(folder, index)
    except (DamagedError, OSError) as error:
        return Torn(name=checkpoint.name, reason=str(error))
    return checkpoint


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
