from pathlib import Path

import pytest

from training.errors import ConfigError, report_failure


def test_our_own_error_is_its_message_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report_failure(ConfigError(["steps has no value"]), {"SM_OUTPUT_DIR": str(tmp_path)})
    assert (tmp_path / "failure").read_text() == "hyperparameters: steps has no value"
    assert capsys.readouterr().err == "error: hyperparameters: steps has no value\n"


def test_an_unexpected_error_has_its_type_and_its_traceback_in_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report_failure(OSError("disk full"), {"SM_OUTPUT_DIR": str(tmp_path)})
    assert (tmp_path / "failure").read_text() == "OSError: disk full"
    assert "OSError: disk full" in capsys.readouterr().err


def test_the_failure_file_is_as_long_as_sagemaker_reads(tmp_path: Path) -> None:
    report_failure(ConfigError(["x" * 5000]), {"SM_OUTPUT_DIR": str(tmp_path)})
    assert len((tmp_path / "failure").read_text()) == 1024


def test_of_several_ranks_the_first_one_tells(tmp_path: Path) -> None:
    for name in ("cause", "consequence"):
        report_failure(ConfigError([name]), {"SM_OUTPUT_DIR": str(tmp_path)})
    assert (tmp_path / "failure").read_text() == "hyperparameters: cause"


def test_outside_sagemaker_nothing_is_written(tmp_path: Path) -> None:
    report_failure(ConfigError(["x"]), {"SM_OUTPUT_DIR": str(tmp_path / "missing")})
    assert list(tmp_path.iterdir()) == []
