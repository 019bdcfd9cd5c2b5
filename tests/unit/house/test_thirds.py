"""Three changes in a row play all long and thorough tests, each about as many seconds as the others."""

import re
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.markdown import ROOT
from tests.thirds import (
    COSTS,
    LARGEST,
    THIRDS,
    WITH_EACH_CHANGE,
    dealt,
    measured,
    named_third,
    read_costs,
    split,
    with_measured,
)

RECORDED = read_costs(COSTS.read_text(encoding="utf-8"))


def item_of(nodeid: str, *markers: str) -> Any:
    return SimpleNamespace(nodeid=nodeid, get_closest_marker=lambda name: name if name in markers else None)


def parts_of(items: list[Any], costs: dict[str, int]) -> list[list[str]]:
    return [[item.nodeid for item in split(items, third, costs)[0]] for third in range(THIRDS)]


def test_each_test_is_in_one_third_with_the_rest_of_its_module() -> None:
    items = [item_of(f"tests/test_{number % 40}.py::test[{number}]", "thorough") for number in range(200)]
    costs = {f"tests/test_{number}.py": number + 2 for number in range(20)}  # the other 20 are not measured
    parts = parts_of(items, costs)
    assert sorted(nodeid for part in parts for nodeid in part) == sorted(item.nodeid for item in items)
    modules = [{nodeid.partition("::")[0] for nodeid in part} for part in parts]
    assert all(modules)
    assert sum(map(len, modules)) == 40


def test_a_module_too_dear_for_one_third_is_dealt_test_by_test() -> None:
    items = [item_of(f"tests/test_dear.py::test[{number}]", "long") for number in range(100)]
    parts = parts_of(items, {"tests/test_dear.py": LARGEST + 1})
    assert sum(map(len, parts)) == 100
    assert all(20 <= len(part) <= 50 for part in parts)


def test_thirds_differ_by_less_than_the_cheapest_module_could_mend() -> None:
    costs = {"a": 200, "b": 120, "c": 110, "d": 90, "e": 60, "f": 20}
    thirds = dealt(costs)
    assert [sum(costs[m] for m in costs if thirds[m] == third) for third in range(THIRDS)] == [200, 200, 200]


def test_a_test_without_a_marker_is_in_every_third() -> None:
    items = [item_of(f"tests/test_{number}.py::test") for number in range(9)]
    assert [len(part) for part in parts_of(items, {})] == [9, 9, 9]


def test_what_ci_plays_with_each_change_is_in_no_third() -> None:
    demo, killed = "tests/e2e/test_demo.py::test", "tests/e2e/test_demo_killed.py::test"
    parts = parts_of([item_of(demo, "long"), item_of(killed, "thorough")], {})
    assert [nodeid for part in parts for nodeid in part] == [killed]
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    for pattern in WITH_EACH_CHANGE:
        assert pattern in script or ("make test-clients" in script and pattern == "tests/clients/*")


@pytest.mark.parametrize("text", ["3", "-1", "one", "0 ", "1.0"])
def test_a_third_that_there_is_not_is_refused(text: str) -> None:
    with pytest.raises(pytest.UsageError, match="TRAINMASTER_THIRD: must be 0, 1 or 2, not"):
        named_third({"TRAINMASTER_THIRD": text})


@pytest.mark.parametrize(
    ("environment", "third"), [({}, None), ({"TRAINMASTER_THIRD": ""}, None), ({"TRAINMASTER_THIRD": "2"}, 2)]
)
def test_no_third_is_everything(environment: dict[str, str], third: int | None) -> None:
    assert named_third(environment) == third


def test_the_third_of_a_change_is_the_number_of_its_commits_modulo_three() -> None:
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    (line,) = re.findall(r"^third=.*$", script, re.MULTILINE)

    def third(git: str = "echo 1243", **environment: str) -> str:
        shell = ["bash", "-euo", "pipefail", "-c", f"git() {{ {git}; }}\n{line}\necho $third"]
        run = subprocess.run(shell, env=environment, capture_output=True, text=True, check=True)
        return run.stdout.strip()

    assert third(PATH="/usr/bin:/bin") == "1"
    assert third("false", PATH="/usr/bin:/bin") == "0"  # an archive without history
    assert third(PATH="/usr/bin:/bin", TRAINMASTER_THIRD="2") == "2"


def test_the_recorded_costs_are_of_modules_that_there_are_and_fill_no_third_too_far() -> None:
    assert [module for module in RECORDED if not (ROOT / module).exists()] == []
    dealt_anyway = ("tests/clients/", "tests/e2e/test_demo.py", "tests/e2e/test_doctor.py")
    assert [module for module in RECORDED if module.startswith(dealt_anyway)] == []
    assert sum(RECORDED.values()) / THIRDS <= 1800  # seconds of one of two workers: a quarter of an hour


def test_costs_are_read_from_the_reports_of_pytest(tmp_path: Path) -> None:
    report = tmp_path / "third-0.xml"
    cases = "".join(
        f'<testcase classname="tests.e2e.test_queue" name="test_{number}" time="2.2"/>' for number in range(3)
    )
    cheap = '<testcase classname="tests.e2e.test_cheap" name="test" time="0.9"/>'
    report.write_text(f"<testsuites><testsuite>{cases}{cheap}</testsuite></testsuites>", encoding="utf-8")
    before = "# seconds\n30 tests/e2e/test_kept.py\n99 tests/e2e/test_queue.py\n"
    table = with_measured(before, measured([report]))
    assert table == "# seconds\n30 tests/e2e/test_kept.py\n7 tests/e2e/test_queue.py\n"
    assert read_costs(table) == {"tests/e2e/test_kept.py": 30, "tests/e2e/test_queue.py": 7}
