"""Numbers of a training program's lines: its own form, those of others, and what is none."""

from itertools import pairwise

import pytest
from trainmaster_client.dashboard.metric_lines import MOST_POINTS, Curve, numbers


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param(
            "metric step=120 loss=2.345670100 lr=3.0e-04 tok_s=379000.2",
            {"step": 120.0, "loss": 2.3456701, "lr": 0.0003, "tok_s": 379000.2},
            id="the training program's own",
        ),
        pytest.param(
            "metric step=7 loss=nan tok_s=5", {"step": 7.0, "tok_s": 5.0}, id="a loss that is no number"
        ),
        pytest.param("step 1200 loss 2.31", {"step": 1200.0, "loss": 2.31}, id="words"),
        pytest.param("{'loss': 2.31, 'step': 40}", {"step": 40.0, "loss": 2.31}, id="a trainer's dictionary"),
        pytest.param("Step: 3  train_loss=1e-2", {"step": 3.0, "loss": 0.01}, id="with a colon"),
        pytest.param("resumed from step 1200", {}, id="a step alone"),
        pytest.param("metric loss=2.3", {}, id="no step"),
        pytest.param("metric step=inf loss=2", {}, id="a step without end"),
        pytest.param("step 1 loss 2" + " " * 2000, {}, id="too long"),
        pytest.param("", {}, id="nothing"),
    ],
)
def test_the_numbers_of_a_line(text: str, found: dict[str, float]) -> None:
    assert numbers(text) == found


def test_a_long_curve_keeps_its_shape_and_a_bounded_number_of_points() -> None:
    curve = Curve()
    for step in range(100_000):
        curve.add({"step": step, "loss": 1.0})
    steps = [point["step"] for point in curve.points]
    assert MOST_POINTS / 2 <= len(steps) <= 2 * MOST_POINTS
    assert steps[0] == 0
    assert steps[-1] >= 100_000 - curve.every
    assert {after - before for before, after in pairwise(steps)} == {curve.every}
