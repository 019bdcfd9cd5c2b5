"""A long test that fails is played once more, alone, before CI fails; both outcomes are printed."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.second_try import FAILED, MOST_AGAIN, main

PASSED, FAILS, BROKEN = pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERNAL_ERROR


class Runs:
    """Stands in for pytest: each run ends with the next code, and leaves the next failures in the cache."""

    def __init__(self, cache: Path, *runs: tuple[int, Sequence[str]]) -> None:
        self.cache, self.runs, self.calls = cache, list(runs), []  # type: ignore[var-annotated]

    def play(self, *arguments: str, timeout: float | None = None) -> int:
        self.calls.append((arguments, timeout))
        code, failed = self.runs.pop(0)
        (self.cache / FAILED).parent.mkdir(parents=True, exist_ok=True)
        (self.cache / FAILED).write_text(json.dumps(dict.fromkeys(failed, True)), encoding="utf-8")
        return code


def test_all_that_passes_is_played_once(tmp_path: Path) -> None:
    runs = Runs(tmp_path, (PASSED, []))
    assert main(["-m", "long"], play=runs.play, cache=tmp_path) == PASSED
    assert [arguments for arguments, _ in runs.calls] == [("-m", "long")]


def test_a_failure_that_passes_alone_is_no_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = Runs(tmp_path, (FAILS, ["tests/a.py::test[a b]", "tests/b.py::test"]), (PASSED, []))
    assert main(["-n", "2", "-m", "long"], play=runs.play, cache=tmp_path) == PASSED
    again, seconds = runs.calls[1]
    assert again == ("-m", "", "-v", "tests/a.py::test[a b]", "tests/b.py::test")  # no -n: alone
    assert seconds is not None
    printed = capsys.readouterr().out
    assert "first try:  2 failed\n  tests/a.py::test[a b]\n  tests/b.py::test\n" in printed
    assert "second try: all of them passed" in printed


def test_what_fails_twice_has_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = Runs(tmp_path, (FAILS, ["tests/a.py::test", "tests/b.py::test"]), (FAILS, ["tests/b.py::test"]))
    assert main([], play=runs.play, cache=tmp_path) == FAILS
    assert "second try: 1 failed\n  tests/b.py::test\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("code", "failed"),
    [
        pytest.param(BROKEN, ["tests/a.py::test"], id="pytest itself broke"),
        pytest.param(
            FAILS, [f"tests/{n}.py::test" for n in range(MOST_AGAIN + 1)], id="too many modules failed"
        ),
        pytest.param(FAILS, [], id="nobody wrote down what failed"),
    ],
)
def test_other_ends_are_not_tried_again(tmp_path: Path, code: int, failed: list[str]) -> None:
    runs = Runs(tmp_path, (code, failed))
    assert main([], play=runs.play, cache=tmp_path) == code
    assert len(runs.calls) == 1


def test_failures_of_an_earlier_run_are_forgotten(tmp_path: Path) -> None:
    runs = Runs(tmp_path, (FAILS, ["tests/old.py::test"]), (FAILS, ["tests/old.py::test"]))
    main([], play=runs.play, cache=tmp_path)
    assert (tmp_path / FAILED).exists()

    def nothing_written(*_: str, timeout: float | None = None) -> int:
        del timeout
        return FAILS

    assert main([], play=nothing_written, cache=tmp_path) == FAILS
    assert not (tmp_path / FAILED).exists()
