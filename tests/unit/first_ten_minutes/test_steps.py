"""What is measured: processor time of the machine, what pip fetched, what lies in the folder."""

import sys
from pathlib import Path

import pytest

from tests.first_ten_minutes.machine import Instant, busy_seconds, others_share
from tests.first_ten_minutes.steps import Beginning, StepError, fetched

STAT = "cpu  1000 20 300 90000 4000 5 6 7 800 0\ncpu0 500 10 150 45000 2000 2 3 4 400 0\n"


WORK = """
import time
open("left", "w").write("x" * 1000)
end = time.process_time() + 0.2
while time.process_time() < end:
    pass
"""


def test_a_core_that_waits_is_not_busy_and_guests_count_once() -> None:
    assert busy_seconds(STAT, 100) == pytest.approx((1000 + 20 + 300 + 5 + 6 + 7) / 100)


def test_what_others_use_is_what_the_machine_uses_less_our_own() -> None:
    first = Instant(seconds=0, own_cpu_seconds=5, machine_cpu_seconds=100)
    last = Instant(seconds=10, own_cpu_seconds=14, machine_cpu_seconds=113)
    assert others_share(first, last, cores=2) == pytest.approx(4 / 20)


def test_packages_count_by_what_pip_says_of_them_and_those_of_this_machine_once(tmp_path: Path) -> None:
    wheel = tmp_path / "torch-2.13.0-py3-none-any.whl"
    wheel.write_bytes(b"x" * 10)
    printed = f"""Collecting boto3 (from trainmaster)
  Downloading boto3-1.44.5-py3-none-any.whl (140 kB)
Downloading pandas-3.0.1-cp311-cp311-manylinux_2_28_x86_64.whl (12.5 MB)
  Downloading six-1.17-py3-none-any.whl.metadata (900 bytes)
Processing {wheel}
Processing file://{wheel}
Processing /gone/a.whl
Requirement already satisfied: six
"""
    assert fetched(printed) == 140_000 + 12_500_000 + 900 + 10


def test_a_step_has_its_time_its_work_and_what_it_left(tmp_path: Path) -> None:
    beginning = Beginning(tmp_path / "first")
    with beginning.step("work"):
        beginning.run(sys.executable, "-c", WORK)
    (step,) = beginning.steps
    assert step.seconds >= step.cpu_seconds / 2 >= 0.1
    assert (step.name, step.written_bytes, step.fetched_bytes) == ("work", 1000, 0)


def test_a_command_that_fails_says_what_it_printed(tmp_path: Path) -> None:
    beginning = Beginning(tmp_path / "first")
    with pytest.raises(StepError, match=r"(?s)ended with 3:.*no disk"):
        beginning.run(sys.executable, "-c", "print('no disk'); raise SystemExit(3)")


def test_nothing_of_this_user_goes_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_PROFILE", "TRAINMASTER_API_URL", "PYTHONPATH", "MAKEFLAGS", "PIP_NO_CACHE_DIR"):
        monkeypatch.setenv(name, "mine")
    found = Beginning(tmp_path / "first").environment({"MORE": "1"})
    assert "mine" not in found.values()
    assert (found["HOME"], found["MORE"]) == (str(tmp_path / "first/home"), "1")
