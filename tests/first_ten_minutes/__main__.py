"""``python -m tests.first_ten_minutes``: the two ways to begin, from an empty folder to the first fit() seen.

Each step is measured: seconds, CPU seconds, what pip fetched (its cache is empty) and what lies on the disk
afterwards. The time of day counts on a quiet machine only; elsewhere its check is skipped, and says why.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from trainmaster_client.report import Report

from tests.first_ten_minutes import machine, ways
from tests.first_ten_minutes.checks import check
from tests.first_ten_minutes.steps import Beginning, StepError
from tests.markdown import ROOT

WAYS = ("checkout", "wheel")


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.first_ten_minutes", description=__doc__)
    parser.add_argument("--json", type=Path, default=Path("build/first.json"), help="where the report goes")
    parser.add_argument("--way", choices=WAYS, action="append", help="one of the two; both if not given")
    parser.add_argument("--wheel", type=Path, help="this wheel, not one made of the checkout")
    arguments = parser.parse_args(argv)
    report = Report("first", argv=("python", "-m", "tests.first_ten_minutes", *argv))
    report.facts["machine"] = {"load": os.getloadavg()[0], "cores": machine.use_two_cores()}
    with TemporaryDirectory(prefix="first-", ignore_cleanup_errors=True) as folder:
        makers: dict[str, Callable[[Beginning], ways.Ready]] = {
            "checkout": ways.by_checkout,
            "wheel": lambda beginning: ways.by_wheel(beginning, _wheel(arguments.wheel, Path(folder))),
        }
        for way in arguments.way or WAYS:
            try:
                report.facts[way] = _measured(Path(folder) / way, makers[way])
            except StepError as error:
                report.check(f"{way}-begins", expected=None, actual=str(error))
                continue
            check(report, way)
            _show(way, report.facts[way])
    return report.finish(arguments.json)


def _measured(folder: Path, make: Callable[[Beginning], ways.Ready]) -> dict[str, Any]:
    beginning = Beginning(folder)
    first = machine.now()
    seen = ways.first_fit(beginning, make(beginning))
    last = machine.now()  # the twin has ended: what it used is known
    in_steps = sum(step.cpu_seconds for step in beginning.steps)
    return {
        "steps": beginning.as_json(),
        "cpu_seconds_of_the_twin": round(last.own_cpu_seconds - first.own_cpu_seconds - in_steps, 2),
        "others_share": round(machine.others_share(first, last, cores=os.cpu_count() or 1), 3),
        **seen,
    }


def _wheel(given: Path | None, folder: Path) -> Path:
    """Handed out ready: making it is no step of who installs it."""
    if given is not None:
        return given.resolve()
    out = folder / "dist"
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (made,) = out.glob("*.whl")
    return made


def _show(way: str, facts: dict[str, Any]) -> None:
    print(f"\n{way:34}{'seconds':>9}{'CPU s':>8}{'fetched':>10}{'written':>10}")
    for step in facts["steps"]:
        sizes = (f"{step[key] / 1e6:.1f} MB" for key in ("fetched_bytes", "written_bytes"))
        print(
            f"  {step['name']:32}{step['seconds']:9.1f}{step['cpu_seconds']:8.1f}",
            *map("{:>9}".format, sizes),
        )
    print(f"  {'of the twin, until its end':41}{facts['cpu_seconds_of_the_twin']:8.1f}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
