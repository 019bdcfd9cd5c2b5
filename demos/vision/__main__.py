"""Train a small vision transformer, preempt it, and compare its losses with an undisturbed run."""

from pathlib import Path

from demos.stage.command import run
from demos.vision.story import tell

REPORT = Path("build/vit.json")


def main() -> int:
    return run(tell, name="python -m demos.vision", description=__doc__, report=REPORT)


if __name__ == "__main__":
    raise SystemExit(main())
