"""What is wanted of the tree, each a check: the figures, and beside them what was counted."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainmaster_client.report import Report

from tests.house.phrases import retired_phrases
from tests.house.plain_words import (
    comment_share,
    docstrings,
    fragments,
    statements,
    vague_loop_variables,
    vague_names,
    written,
)
from tests.house.tree import GENERATED, Module, body_lines, importers, parameters, read_modules
from tests.house.words import retired_words

PRODUCT = (
    "layers/",
    "functions/",
    "client/",
    "local/",
    "demos/",
    "training/",
    "tools/",
    "benchmarks/",
    "release/",
)
MOST_FUNCTION_LINES = 40
MOST_MODULE_LINES = 300
COPIED_ALONE = "training/launch.py"
"""Into containers, without the modules that it could be divided into: it may be longer."""
MOST_PARAMETERS = 5
MOST_IDLE_FILES = 12
MOST_CONTRACT_LINES = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    name: str
    folder: str
    most_at_top: int
    most_per_thousand_lines: float
    most_with_one_importer: float | None
    """As a share; None: not asked of it."""


ROOMS = (
    Room(
        name="layer",
        folder="layers/trainmaster/trainmaster/",
        most_at_top=3,
        most_per_thousand_lines=7,
        most_with_one_importer=0.33,
    ),
    Room(
        name="client",
        folder="client/trainmaster_client/",
        most_at_top=8,
        most_per_thousand_lines=8,
        most_with_one_importer=None,
    ),
    Room(
        name="training",
        folder="training/",
        most_at_top=16,
        most_per_thousand_lines=6.5,
        most_with_one_importer=None,
    ),
    Room(
        name="local",
        folder="local/",
        most_at_top=23,
        most_per_thousand_lines=10,
        most_with_one_importer=None,
    ),
    Room(
        name="demos",
        folder="demos/",
        most_at_top=16,
        most_per_thousand_lines=9,
        most_with_one_importer=None,
    ),
)


def note_all(report: Report, root: Path, tracked: Sequence[str]) -> None:
    product = [path for path in tracked if path.startswith(PRODUCT)]
    modules = read_modules(root, (path for path in product if path.endswith(".py")))
    who = importers(modules)
    for room in ROOMS:
        _note_room(report, room, modules, who)
    _note_sizes(report, modules.values())
    _note_idle(report, root, tracked)
    _note_contract(report, root, modules)
    _note_words(report, root, tracked)
    _note_plain_words(report, root, modules)
    _note_statements(report, root, tracked)


def _note_room(
    report: Report, room: Room, modules: Mapping[str, Module], who: Mapping[str, set[str]]
) -> None:
    inside = [one for one in modules.values() if one.path.startswith(room.folder)]
    counted = [one for one in inside if not one.is_package and one.leaf not in {*GENERATED, "__main__"}]
    top = sorted(one.leaf for one in counted if "/" not in one.path.removeprefix(room.folder))
    single = sorted(one.name for one in counted if len(who.get(one.name, ())) == 1)
    twice = sorted(name for name, times in Counter(one.leaf for one in counted).items() if times > 1)
    rate = 1000 * len(counted) / sum(one.lines for one in counted)
    share = len(single) / len(counted)
    _at_most(report, f"{room.name}-at-top", len(top), room.most_at_top)
    _at_most(report, f"{room.name}-modules-per-1000-lines", round(rate, 2), room.most_per_thousand_lines)
    report.check(f"{room.name}-names-are-one", expected=[], actual=twice)
    if room.most_with_one_importer is not None:
        _at_most(report, f"{room.name}-one-importer", round(share, 3), room.most_with_one_importer)
    report.facts[room.name] = {
        "modules": len(counted),
        "lines": sum(one.lines for one in counted),
        "at_top": top,
        "one_importer": single,
        "one_importer_share": round(share, 3),
    }


def _note_sizes(report: Report, modules: Iterable[Module]) -> None:
    made = [one for one in modules if one.leaf not in GENERATED]
    functions = [(one, function) for one in made for function in one.functions()]
    sizes = sorted(body_lines(function) for _, function in functions)
    long = [
        f"{one.path}:{function.lineno} {function.name} {body_lines(function)}"
        for one, function in functions
        if body_lines(function) > MOST_FUNCTION_LINES
    ]
    many = [
        f"{one.path}:{function.lineno} {function.name} {len(parameters(function))}"
        for one, function in functions
        if len(parameters(function)) > MOST_PARAMETERS
    ]
    report.check("functions-of-at-most-40-lines", expected=[], actual=long)
    report.check("at-most-5-parameters", expected=[], actual=many)
    report.check(
        "modules-of-at-most-300-lines",
        expected=[],
        actual=[
            f"{one.path} {one.lines}"
            for one in made
            if one.lines > MOST_MODULE_LINES and str(one.path) != COPIED_ALONE
        ],
    )
    report.facts["functions"] = {
        "functions": len(sizes),
        "median_lines": sizes[len(sizes) // 2],
        "p90_lines": sizes[len(sizes) * 9 // 10],
        "most_lines": sizes[-1],
    }
    report.facts["product_lines"] = sum(one.lines for one in made)


def _note_idle(report: Report, root: Path, tracked: Iterable[str]) -> None:
    """The files that renaming one field of the idle feature would change."""
    layer = (path for path in tracked if path.startswith(ROOMS[0].folder) and path.endswith(".py"))
    named = [path for path in layer if re.search(r"\bidle_since\b", (root / path).read_text("utf-8"))]
    _at_most(report, "idle-files", len(named), MOST_IDLE_FILES)
    report.facts["idle_files"] = named


def _note_contract(report: Report, root: Path, modules: Mapping[str, Module]) -> None:
    """The contracts that name the layer; folders alone, so that a new file is covered from birth."""
    text = (root / "pyproject.toml").read_text("utf-8")
    blocks = [
        block
        for block in re.split(r"\n(?=\[)", text)
        if '"trainmaster' in block and "importlinter.c" in block
    ]
    ours = [block for block in blocks if not re.search(r'"(trainmaster_client|training)', block)]
    named = set(re.findall(r'"(trainmaster\.[\w.]+)"', "\n".join(ours)))
    layer = {name for name in modules if name.partition(".")[0] == "trainmaster"}
    contracts = tomllib.loads(text)["tool"]["importlinter"]["contracts"]
    layers = [
        one for one in contracts if one["type"] == "layers" and one.get("containers") == ["trainmaster"]
    ]
    lines = sum(len(block.strip().splitlines()) for block in ours)
    _at_most(report, "contract-lines", lines, MOST_CONTRACT_LINES)
    report.check(
        "contract-names-no-module",
        expected=[],
        actual=sorted(name for name in named & layer if not modules[name].is_package),
    )
    report.check("contract-is-exhaustive", expected=[True], actual=[one.get("exhaustive") for one in layers])
    report.facts["contract"] = {"lines": lines, "modules_of_the_layer": len(layer)}


def _note_words(report: Report, root: Path, tracked: Iterable[str]) -> None:
    found = retired_words(root, tracked)
    for word, places in found.items():
        report.check(f"word-{word}", expected=0, actual=len(places))
    report.check("phrases", expected=[], actual=[str(one) for one in retired_phrases(root, tracked)][:50])
    report.facts["words"] = {word: places[:50] for word, places in found.items() if places}


def _note_plain_words(report: Report, root: Path, modules: Mapping[str, Module]) -> None:
    by_hand = written(modules)
    broken, notes = fragments(by_hand), sum(1 for module in by_hand for _ in docstrings(module.syntax))
    report.check("fragment-docstrings", expected=[], actual=[str(place) for place in broken][:50])
    loops, names = vague_loop_variables(by_hand), vague_names(by_hand)
    report.check("vague-loop-variables", expected=[], actual=[str(place) for place in loops])
    report.check("vague-names", expected=[], actual=[str(place) for place in names])
    sources = ((root / module.path).read_text("utf-8") for module in by_hand)
    report.facts["plain_words"] = {
        "docstrings": notes,
        "comment_share": round(comment_share(sources), 4),
    }


def _note_statements(report: Report, root: Path, tracked: Iterable[str]) -> None:
    """Count the statements (docstrings and field notes left out) and lines of each top folder."""
    files = [path for path in tracked if path.endswith(".py")]
    counts: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for module in written(read_modules(root, files)):
        folder = module.path.partition("/")[0]
        counts[folder] += statements(module.syntax)
        lines[folder] += module.lines
    report.facts["statements"] = dict(sorted(counts.items()))
    report.facts["python_lines"] = dict(sorted(lines.items()))


def _at_most(report: Report, name: str, actual: float, most: float) -> None:
    report.check(name, expected=f"at most {most}", actual=actual, ok=actual <= most)
