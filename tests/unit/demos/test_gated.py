"""The scripts of demo-scripts get no further than the story wants."""

from pathlib import Path

import pytest

from demos.programs.gated import WAITS, gated_sleep


def test_a_step_waits_until_the_file_allows_it_and_the_first_wait_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gate = tmp_path / "gate"
    gate.write_text("2")
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            gate.write_text("3")
        if len(pauses) == 6:
            gate.unlink()

    sleep = gated_sleep(gate, pause=pause)
    sleep(0.0)
    sleep(0.0)
    assert (pauses, capsys.readouterr().out) == ([], "")
    sleep(0.0)
    assert (len(pauses), capsys.readouterr().out) == (3, f"{WAITS}\n")
    sleep(0.0)
    assert (len(pauses), capsys.readouterr().out) == (6, "")
    sleep(0.0)
    assert len(pauses) == 6


def test_what_a_library_sleeps_is_its_own(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    gate.write_text("0")
    pauses: list[float] = []
    gated_sleep(gate, pause=pauses.append)(0.25)
    assert pauses == [0.25]
