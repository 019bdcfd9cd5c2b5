"""How the tree is measured."""

from pathlib import Path

import pytest

from tests.house.phrases import EXCEPTIONS, retired_phrases
from tests.house.tracked import ROOT
from tests.house.tree import body_lines, importers, module_name, parameters, read_modules
from tests.house.words import RETIRED, retired_words


def tree(root: Path, **files: str) -> list[str]:
    """Files by their paths, ``__`` for a slash."""
    paths = []
    for name, text in files.items():
        path = root / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        paths.append(path.relative_to(root).as_posix())
    return paths


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("layers/trainmaster/trainmaster/core/errors.py", "trainmaster.core.errors"),
        ("layers/trainmaster/trainmaster/core/__init__.py", "trainmaster.core"),
        ("client/trainmaster_client/hook.py", "trainmaster_client.hook"),
        ("local/twin.py", "local.twin"),
    ],
)
def test_a_module_is_named_as_python_imports_it(path: str, name: str) -> None:
    assert module_name(path) == name


def test_who_imports_a_module_is_known_however_it_is_imported(tmp_path: Path) -> None:
    paths = tree(
        tmp_path,
        p__a="",
        p__b="from p.a import x",
        p__c="from p import a",
        p__d="import p.a",
        p__e="from .a import x",
        p__f="from p.b import y",
    )
    who = importers(read_modules(tmp_path, paths))
    assert who["p.a"] == {"p.b", "p.c", "p.d", "p.e"}
    assert who["p.b"] == {"p.f"}


def test_a_package_that_passes_a_name_on_is_no_importer_but_who_takes_it_from_there_is(
    tmp_path: Path,
) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p/__init__.py").write_text("from p.a import x\n", encoding="utf-8")
    paths = ["p/__init__.py", *tree(tmp_path, p__a="x = 1", q="from p import x", r="from p.a import x")]
    assert importers(read_modules(tmp_path, paths))["p.a"] == {"q", "r"}


def test_a_function_is_as_long_as_what_it_does_and_has_the_parameters_that_callers_give(
    tmp_path: Path,
) -> None:
    text = (
        'class A:\n    def f(self, a, /, b, *, c):\n        """Two\n\n        lines."""\n        return 1\n'
    )
    (module,) = read_modules(tmp_path, tree(tmp_path, m=text)).values()
    (function,) = module.functions()
    assert body_lines(function) == 2
    assert parameters(function) == ["a", "b", "c"]


def test_a_retired_word_is_found_with_its_line_and_what_the_wire_keeps_is_not(tmp_path: Path) -> None:
    text = '"""An errand."""\n\nQUEUE = "TRAINMASTER_DOORBELL_URL"\nDOORBELL = 1\n'
    found = retired_words(tmp_path, tree(tmp_path, m=text))
    assert {word: places for word, places in found.items() if places} == {
        "errand": ["m.py:1"],
        "doorbell": ["m.py:4"],
    }
    assert found.keys() == RETIRED.keys()


def test_a_retired_phrase_is_found_with_its_line_and_what_to_write_instead(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/page.md").write_text("# Page\n\nIt goes on\nfrom its checkpoint, and is told.\n")
    code = '"""A job that was preempted so often."""\n\nWAITED = "since 4m43s"  # a comment may be told\n'
    paths = ["docs/page.md", *tree(tmp_path, client__m=code)]
    assert list(map(str, retired_phrases(tmp_path, paths))) == [
        "client/m.py:1: 'so often': write this many times",
        "client/m.py:3: 'since 4m43s': write for, with a duration",
        "docs/page.md:3: 'goes on from': write resume from, continue with",
        "docs/page.md:4: 'is told': write is reported, is notified, gets a notice",
    ]


def test_of_the_changelog_only_the_unreleased_part_is_held_to_it(tmp_path: Path) -> None:
    text = "# Changelog\n\n## [Unreleased]\n\n- It is told.\n\n## [0.1.0]\n\n- It was told.\n"
    (tmp_path / "CHANGELOG.md").write_text(text)
    assert [found.line for found in retired_phrases(tmp_path, ["CHANGELOG.md"])] == [5]
    (tmp_path / "docs/adr").mkdir(parents=True)
    (tmp_path / "docs/adr/0001-a.md").write_text("It is told.\n")
    assert retired_phrases(tmp_path, ["docs/adr/0001-a.md"]) == []


def test_every_exception_is_of_a_line_that_there_is() -> None:
    for path, piece in EXCEPTIONS:
        assert piece in (ROOT / path).read_text(encoding="utf-8")
