"""Train with three libraries' own loops, preempt each, and compare its losses with an undisturbed run."""

from pathlib import Path

from demos.stage.command import run
from demos.scripts.story import tell

REPORT = Path("build/scripts.json")


def main() -> int:
    return run(tell, name="python -m demos.scripts", description=__doc__, report=REPORT)


if __name__ == "__main__":
    raise SystemExit(main())
