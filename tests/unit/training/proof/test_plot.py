from pathlib import Path

from matplotlib.image import imread

from tests.unit.training.proof.facts import facts, interrupted, uninterrupted
from training.proof.plot import draw


def test_curves_are_drawn_with_differences_and_without(tmp_path: Path) -> None:
    shifted = interrupted(worlds=(2, 4), signal="5:KILL", resumed=3)
    shifted["id"] = "other"
    shifted["losses"][-1] = [8, (4.5 + 1e-8).hex()]
    path = tmp_path / "new" / "curves.png"
    draw(facts(uninterrupted(), interrupted(), shifted), path)
    height, width, _ = imread(path).shape
    assert (height, width) == (825, 1210)


def test_a_run_that_trained_no_step_is_drawn_as_nothing(tmp_path: Path) -> None:
    nothing = interrupted() | {"losses": []}
    nothing["attempts"] = [
        one | {"first_step": None, "last_step": None, "steps_trained": 0} for one in nothing["attempts"]
    ]
    draw(facts(uninterrupted(), nothing), tmp_path / "curves.png")
    assert (tmp_path / "curves.png").exists()
