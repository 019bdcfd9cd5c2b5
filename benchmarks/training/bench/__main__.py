"""`python -m benchmarks.training.bench`: modes of one model, or cases (`--suite`) in own processes."""

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str]) -> int:
    """The suite's own process never loads torch: what it watches may take the memory, or the GPU, with it."""
    if any(word.split("=")[0] == "--suite" for word in arguments):
        from benchmarks.training.bench import suite  # noqa: PLC0415

        return suite.main(arguments)
    from benchmarks.training.bench import modes  # noqa: PLC0415  torch takes seconds

    return modes.main(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
