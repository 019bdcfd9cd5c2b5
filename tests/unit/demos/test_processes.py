"""Programs beside the twin end with their block, and what they printed is kept."""

import sys
from pathlib import Path

import pytest

from demos.stage.patience import ProgramEndedError
from demos.stage.processes import Program

PRINTS = "import os; print('said', os.environ['WHAT'], flush=True)"


def wait_for(program: Program) -> None:
    while program.exit_code is None:
        pass


def test_a_program_prints_to_its_log_with_variables_of_its_own(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PRINTS]
    with Program("the program", command, log=tmp_path / "log", env={"WHAT": "hello"}) as program:
        wait_for(program)
    assert (program.exit_code, program.lines()) == (0, ["said hello"])
    assert program.printed_bytes() == len("said hello\n")
    program.check()


def test_a_program_that_fails_is_an_error_with_all_that_it_printed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "print('why'); raise SystemExit(3)"]
    with Program("the program", command, log=tmp_path / "log") as program:
        wait_for(program)
        with pytest.raises(ProgramEndedError, match="the program has ended with exit code 3") as failed:
            program.check()
    assert failed.value.printed == "why"


def test_a_program_ends_with_its_block(tmp_path: Path) -> None:
    with Program("the program", ["sleep", "60"], log=tmp_path / "log") as program:
        assert program.exit_code is None
    assert program.exit_code is not None


def test_before_its_start_it_has_printed_nothing(tmp_path: Path) -> None:
    program = Program("the program", ["true"], log=tmp_path / "log")
    assert (program.exit_code, program.lines()) == (None, [])
