import pytest

from training.optim import learning_rate


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        pytest.param(1, 0.1, id="warms up from the first step"),
        pytest.param(5, 0.5, id="in a straight line"),
        pytest.param(10, 1.0, id="to the peak"),
        pytest.param(60, 0.55, id="is half-way down in the middle of the rest"),
        pytest.param(110, 0.1, id="and ends at a tenth"),
    ],
)
def test_the_learning_rate_follows_from_the_step(step: int, expected: float) -> None:
    assert learning_rate(step, peak=1.0, warmup_steps=10, steps=110) == pytest.approx(expected)


def test_a_job_shorter_than_its_warm_up_never_reaches_the_peak() -> None:
    assert learning_rate(3, peak=1.0, warmup_steps=10, steps=3) == pytest.approx(0.3)


def test_without_warm_up_the_first_step_is_near_the_peak() -> None:
    assert learning_rate(1, peak=1.0, warmup_steps=0, steps=100) == pytest.approx(1.0, abs=1e-3)
