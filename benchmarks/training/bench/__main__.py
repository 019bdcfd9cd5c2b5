"""`python -m benchmarks.training.bench`: modes of one model, or cases (`--suite`) in own processes."""

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str]) -> int:
    """Run modes or a suite; a suite's own process loads no torch, as a case may take memory or GPU down."""
    if any(word.split("=")[0] == "--suite" for word in arguments):
        from benchmarks.training.bench import suite  # noqa: PLC0415

        return suite.main(arguments)
    from benchmarks.training.bench import modes  # noqa: PLC0415  torch takes seconds

    return modes.main(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
