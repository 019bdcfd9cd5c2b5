"""The guide of the training program names what there is: options with their defaults, modules, pages."""

from dataclasses import MISSING, fields
from pathlib import Path

from tests.markdown import codes, links, table, text_of
from training.config import TrainConfig

_ROOT = Path(__file__).parents[3]
_GUIDE = text_of("docs/training/README.md")


def _options() -> list[list[str]]:
    """What the table of options has to say: name, default, variable that replaces the default, meaning."""
    rows = []
    for one in fields(TrainConfig):
        if "text" not in one.metadata:
            continue
        assert one.default is not MISSING
        default = str(one.default).lower() if isinstance(one.default, bool) else str(one.default)
        names = (one.name, default, one.metadata["env"])
        rows.append([*(f"`{name}`" if name else "" for name in names), one.metadata["text"]])
    return rows


def test_the_table_of_options_is_that_of_help() -> None:
    shown = table(text_of("docs/training/options.md"), "option", "default", "variable", "")
    wanted = _options()
    rows = "\n".join(f"| {' | '.join(row)} |".replace("|  |", "| |") for row in wanted)
    assert shown == wanted, f"the table of docs/training/options.md has to be:\n{rows}"


def test_the_guide_names_every_module_and_room_and_no_other() -> None:
    folder = _ROOT / "training"
    modules = {path.name for path in folder.glob("*.py")} - {"__init__.py"}
    assert _named("module") == modules
    assert _named("room") == {f"{path.parent.name}/" for path in folder.glob("*/__init__.py")}


def _named(column: str) -> set[str]:
    return {code for row in table(_GUIDE, column, "what lives there") for code in codes(row[0])}


def test_the_guide_leads_to_every_page() -> None:
    pages = {path.name for path in (_ROOT / "docs/training").glob("*.md")} - {"README.md"}
    assert pages - set(links(_GUIDE)) == set()
