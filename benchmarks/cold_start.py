"""CPU seconds of a function's imports at a cold start, with the layer's bytecode and without it.

Lambda's /opt is read-only, so a layer that was built without bytecode is compiled again by every cold start.
The built layer is copied, one copy is compiled by this very Python in the form that ``make build`` uses, and
fresh processes that may write no bytecode import each function from both, in turn.
"""

import argparse
import compileall
import os
import py_compile
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from trainmaster_client.report import Report

ROOT = Path(__file__).resolve().parents[1]
RUNS = 5
FUNCTIONS = ("api", "schedule", "reconcile")
IMPORT = """
import importlib.util, sys
sys.path.insert(0, sys.argv[1])
spec = importlib.util.spec_from_file_location("app", sys.argv[2])
spec.loader.exec_module(importlib.util.module_from_spec(spec))
"""


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cold_start", description=__doc__)
    parser.add_argument("--json", type=Path, default=ROOT / "build" / "cold_start.json", metavar="PATH")
    arguments = parser.parse_args(argv)
    report = Report("cold_start")
    with tempfile.TemporaryDirectory() as folder:
        plain, compiled = layers(Path(folder))
        report.facts["python"] = sys.version.split()[0]
        for function in FUNCTIONS:
            without, with_it = measured(plain, compiled, ROOT / "functions" / function / "app.py")
            report.facts[function] = {"without": without, "with": with_it}
            ratio = round(min(with_it) / min(without), 2)
            print(
                f"{function:<10} {min(without):.2f} s CPU without bytecode,"
                f" {min(with_it):.2f} s with: {ratio} x"
            )
            report.check(f"{function}-is-cheaper", expected="below 1", actual=ratio, ok=ratio < 1)
    return report.finish(arguments.json)


def layers(folder: Path) -> tuple[Path, Path]:
    """Build the layer without bytecode, and make a compiled copy of it."""
    source, built = folder / "source", folder / "plain"
    shutil.copytree(ROOT / "layers" / "trainmaster", source, ignore=shutil.ignore_patterns("__pycache__"))
    settings = {"ARTIFACTS_DIR": str(built), "LAYER_PYTHON": sys.executable, "BYTECODE_PYTHON": "false"}
    command = ["make", "--silent", "build-Layer"]
    subprocess.run(command, cwd=source, env=os.environ | settings, check=True, stdout=subprocess.DEVNULL)
    compiled = folder / "compiled"
    shutil.copytree(built, compiled)
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    compileall.compile_dir(str(compiled), quiet=2, force=True, invalidation_mode=unchecked)
    return built / "python", compiled / "python"


def measured(plain: Path, compiled: Path, app: Path) -> tuple[list[float], list[float]]:
    """Measure CPU seconds of each run, both kinds in turn, after one that fills the page cache."""
    seconds: dict[Path, list[float]] = {plain: [], compiled: []}
    for run in range(RUNS + 1):
        for layer, spent in seconds.items():
            cost = _cpu_seconds(layer, app)
            if run:
                spent.append(round(cost, 3))
    return seconds[plain], seconds[compiled]


def _cpu_seconds(layer: Path, app: Path) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-B", "-I", "-S", "-c", IMPORT, str(layer), str(app)]
    subprocess.run(command, check=True, env={})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    sys.exit(main())
