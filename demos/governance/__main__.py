"""Break rules, stall, fail and bypass the queue, show what becomes of it, and record what happened."""

from pathlib import Path

from demos.stage.command import run
from demos.governance.story import tell

REPORT = Path("build/governance.json")


def main() -> int:
    return run(tell, name="demo-governance", description=__doc__, report=REPORT)


if __name__ == "__main__":
    raise SystemExit(main())
