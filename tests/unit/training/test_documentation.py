from dataclasses import fields
from pathlib import Path

from training.config import TrainConfig

_GUIDE = (Path(__file__).parents[3] / "docs/training.md").read_text()


def test_the_guide_names_every_option_with_its_default() -> None:
    rows = [line for line in _GUIDE.splitlines() if line.startswith("| `")]
    for option in fields(TrainConfig):
        (row,) = [row for row in rows if f"`{option.name}`" in row.split("|")[1]]
        assert str(option.default) in row.split("|")[2]


def test_the_guide_names_every_module() -> None:
    folder = Path(__file__).parents[3] / "training"
    modules = {path.name for path in folder.glob("*.py")} - {"__init__.py", "errors.py"}
    assert {name for name in modules if f"`{name}`" not in _GUIDE} == set()
