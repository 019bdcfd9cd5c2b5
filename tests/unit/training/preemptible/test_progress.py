import pytest

from training.preemptible.progress import Progress, width


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def lines(
    capsys: pytest.CaptureFixture[str], steps: int | None, *seconds: float, first: int = 7
) -> list[str]:
    """Take steps that last so many seconds, after the first one of an attempt."""
    clock = Clock()
    progress = Progress(first - 1, width=4, clock=clock)
    clock.now += 300.0  # it compiles
    progress.reached(first, steps)
    for step, lasts in enumerate(seconds, first + 1):
        clock.now += lasts
        progress.reached(step, steps)
    return capsys.readouterr().out.splitlines()


def test_a_line_has_the_mean_of_the_steps_since_the_one_before(capsys: pytest.CaptureFixture[str]) -> None:
    assert lines(capsys, 1000, 10.0, 10.0, 13.0, 30.0) == [
        "progress step=10 steps=1000 width=4 step_ms=11000.0",
        "progress step=11 steps=1000 width=4 step_ms=30000.0",
    ]


def test_quick_steps_have_a_line_every_half_minute(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(lines(capsys, 1000, *[0.125] * 479)) == 1
    assert len(lines(capsys, 1000, *[0.125] * 480)) == 2


def test_the_first_step_of_an_attempt_is_not_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert lines(capsys, 1000, 5.0) == []


@pytest.mark.parametrize("steps", [None, 0])
def test_an_unknown_end_is_left_out(capsys: pytest.CaptureFixture[str], steps: int | None) -> None:
    assert lines(capsys, steps, 40.0) == ["progress step=8 width=4 step_ms=40000.0"]


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        pytest.param({}, 1, id="alone"),
        pytest.param({"WORLD_SIZE": "16", "LOCAL_WORLD_SIZE": "8"}, 2, id="torchrun"),
        pytest.param({"WORLD_SIZE": "4"}, 4, id="a rank on each host"),
        pytest.param(
            {"TRAINMASTER_WIDTH": "3", "WORLD_SIZE": "16", "LOCAL_WORLD_SIZE": "8"}, 3, id="the launcher"
        ),
    ],
)
def test_the_width_is_what_the_launcher_counted(env: dict[str, str], expected: int) -> None:
    assert width(env) == expected
