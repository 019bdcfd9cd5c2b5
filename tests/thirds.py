"""Thirds of the long and thorough tests, alike in cost, so that three changes in a row play all of them.

``tests/long_costs.txt`` says what each module costs. Modules are dealt from the dearest to the cheapest, each
to the third that has least; one above ``LARGEST`` is dealt test by test, as no third could balance it. A
module that nobody measured is dealt by a hash of its name.

``TRAINMASTER_THIRD`` names the third, 0 to 2; without it every test that the markers allow is played.
``python -m tests.thirds build/third-*.xml`` writes the costs anew from pytest's reports, and prints the sums.
"""

import argparse
import sys
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatch
from math import ceil
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

THIRDS = 3
NAMED_BY = "TRAINMASTER_THIRD"
COSTS = Path(__file__).with_name("long_costs.txt")
LARGEST = 240
"""Seconds above which a module is dealt test by test; what its tests share is then made in each third."""
CHEAPEST = 2
"""Seconds below which a module is left out of the table: it weighs nothing in any third."""
WITH_EACH_CHANGE = ("tests/clients/*", "tests/e2e/test_demo*.py", "tests/e2e/test_doctor.py")
"""Modules whose long tests ``.ci/run`` plays with every change. They are in no third."""


def named_third(environment: Mapping[str, str]) -> int | None:
    """Return the third that the environment names; None if it names none.

    Raises:
        pytest.UsageError: It is not a whole number from 0 to 2.
    """
    text = environment.get(NAMED_BY, "")
    if not text:
        return None
    if text not in {str(third) for third in range(THIRDS)}:
        raise pytest.UsageError(f"{NAMED_BY}: must be 0, 1 or 2, not {text!r}")
    return int(text)


def read_costs(text: str) -> dict[str, int]:
    """Read seconds by module from lines like ``42 tests/e2e/test_queue.py``; ``#`` begins a comment."""
    lines = (line.partition("#")[0].split() for line in text.splitlines())
    return {module: int(seconds) for seconds, module in filter(None, lines)}


def dealt(costs: Mapping[str, int]) -> dict[str, int]:
    """Return the third of each module that is dealt whole."""
    sums = [0] * THIRDS
    thirds: dict[str, int] = {}
    for module, seconds in sorted(costs.items(), key=lambda cost: (-cost[1], cost[0])):
        if seconds <= LARGEST:
            thirds[module] = sums.index(min(sums))
            sums[thirds[module]] += seconds
    return thirds


def third_of(nodeid: str, costs: Mapping[str, int], thirds: Mapping[str, int]) -> int:
    """Return the third that a test is in."""
    module = nodeid.partition("::")[0]
    if module in thirds:
        return thirds[module]
    hashed = nodeid if module in costs else module
    return zlib.crc32(hashed.encode()) % THIRDS


def is_in(item: pytest.Item, third: int, costs: Mapping[str, int], thirds: Mapping[str, int]) -> bool:
    """Tell whether a test is played with the third; one without a marker is in each of them."""
    is_long = item.get_closest_marker("long") is not None
    if not is_long and item.get_closest_marker("thorough") is None:
        return True
    module = item.nodeid.partition("::")[0]
    if is_long and any(fnmatch(module, pattern) for pattern in WITH_EACH_CHANGE):
        return False
    return third_of(item.nodeid, costs, thirds) == third


def split(
    items: Sequence[pytest.Item], third: int, costs: Mapping[str, int]
) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Split tests into those of the third, and the others."""
    thirds = dealt(costs)
    kept: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        (kept if is_in(item, third, costs, thirds) else left).append(item)
    return kept, left


def measured(reports: Iterable[Path]) -> dict[str, float]:
    """Add up the seconds of each module in pytest's JUnit reports."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for report in reports:
        for case in ET.parse(report).iter("testcase"):
            module = case.attrib["classname"].replace(".", "/") + ".py"
            seconds[module] += float(case.attrib["time"])
    return seconds


def with_measured(text: str, seconds: Mapping[str, float]) -> str:
    """Write the table of costs with newly measured ones, the dearest module first; comments stay on top."""
    comments = [line for line in text.splitlines() if line.startswith("#")]
    costs = read_costs(text) | {module: ceil(spent) for module, spent in seconds.items()}
    worth = {module: cost for module, cost in costs.items() if cost >= CHEAPEST}
    rows = sorted(worth.items(), key=lambda cost: (-cost[1], cost[0]))
    return "\n".join([*comments, *(f"{cost} {module}" for module, cost in rows)]) + "\n"


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.thirds", description=__doc__)
    parser.add_argument(
        "reports", type=Path, nargs="*", help="pytest's JUnit reports, all on one quiet machine"
    )
    text = with_measured(COSTS.read_text(encoding="utf-8"), measured(parser.parse_args(argv).reports))
    COSTS.write_text(text, encoding="utf-8")
    costs = read_costs(text)
    shared = sum(cost for cost in costs.values() if cost > LARGEST) / THIRDS
    thirds = dealt(costs)
    for third in range(THIRDS):
        whole = sum(costs[module] for module, its_third in thirds.items() if its_third == third)
        print(f"third {third}: {whole + shared:.0f} s of one worker")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
