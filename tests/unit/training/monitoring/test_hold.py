"""A training is held after a step until a file says more."""

from pathlib import Path

import pytest

from training.monitoring.report import last_step_allowed, wait_for


@pytest.mark.parametrize(
    ("text", "allowed"),
    [(None, float("inf")), ("", float("inf")), ("many", float("inf")), ("7", 7), ("7\n", 7), ("0", 0)],
)
def test_the_file_says_how_far_a_training_may_go(text: str | None, allowed: float, tmp_path: Path) -> None:
    file = tmp_path / "hold"
    if text is not None:
        file.write_text(text)
    assert last_step_allowed(file) == allowed


def test_a_step_begins_when_the_file_allows_it(tmp_path: Path) -> None:
    file = tmp_path / "hold"
    file.write_text("3")
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 4:
            file.write_text("4")

    wait_for(3, str(file), is_over=lambda: False, pause=pause)
    assert pauses == []
    wait_for(4, str(file), is_over=lambda: False, pause=pause)
    assert len(pauses) == 4


def test_a_stop_ends_the_wait(tmp_path: Path) -> None:
    file = tmp_path / "hold"
    file.write_text("3")
    asked: list[bool] = []
    wait_for(9, str(file), is_over=lambda: len(asked) > 2, pause=lambda _: asked.append(True))
    assert len(asked) == 3
