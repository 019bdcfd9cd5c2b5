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
    found = verdicts(parser.parse_args(arguments).directory)
    for one in found:
        print(f"{one.name}  {described(one)}")
    if not found:
        print("there are no checkpoints")
    return 0 if found and all(isinstance(one, Whole) for one in found) else _EXIT_TORN


def described(one: Finding) -> str:
    if not isinstance(one, Whole):
        return f"{'torn' if isinstance(one, Torn) else 'refused'}: {one.reason}"
    hashes = one.manifest.hashes
    return f"whole, by the {hashes['algorithm']} of every item" if hashes else "of the right sizes, no hashes"


def verdicts(directory: Path) -> list[Finding]:
    """The newest first. Every byte of the shards is read."""
    found = findings({str(directory): view_of(LocalStore(directory))})
    return [_verified(directory, one) if isinstance(one, Whole) else one for one in found]


def _verified(directory: Path, one: Whole) -> Finding:
    folder = directory / one.name
    try:
        index = verified_index((folder / INDEX_COPY).read_bytes(), one.manifest)
        if has_hashes(index):
            verify_items(folder, index)
    except (DamagedError, OSError) as error:
        return Torn(name=one.name, reason=str(error))
    return one


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
