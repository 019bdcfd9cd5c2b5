import pytest

from benchmarks.training.proof.__main__ import main


def test_a_schedule_that_cannot_be_is_refused_with_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--kill-at", "7:TERM,13:KILL", "--worlds", "2,2"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == (
        "error: --worlds has 2 and --kill-at 2: an attempt follows each kill, so give 3 numbers of ranks\n"
    )


def test_a_number_that_is_none_is_refused_too(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--steps", "many"])
    assert caught.value.code == 2
    assert "invalid int value: 'many'" in capsys.readouterr().err
