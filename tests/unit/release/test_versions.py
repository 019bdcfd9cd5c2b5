"""The version has one place, and a release is refused where it would be wrong."""

import re
import tomllib
from pathlib import Path

import pytest
import trainmaster

from release import versions
from release.versions import VersionError
from tests.markdown import ROOT, documents


def checkout(folder: Path, text: str) -> Path:
    path = folder / versions.HOME
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return folder


def test_it_is_read_and_written_in_its_one_place(tmp_path: Path) -> None:
    root = checkout(tmp_path, '"""What it is."""\n\n__version__ = "0.1.0"\n"""Of both."""\n')
    assert versions.read(root) == "0.1.0"
    versions.write(root, "0.2.0")
    assert (
        root / versions.HOME
    ).read_text() == '"""What it is."""\n\n__version__ = "0.2.0"\n"""Of both."""\n'


@pytest.mark.parametrize(
    "text", ["", '__version__ = "0.1"\n', '__version__ = "0.1.0"\n' * 2, '__version__ = "0.1.0rc1"\n']
)
def test_a_place_without_one_valid_version_is_an_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(VersionError):
        versions.read(checkout(tmp_path, text))


def test_the_wheel_reads_it_there_and_no_document_or_template_repeats_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["tool"]["hatch"]["version"]["path"] == str(versions.HOME)
    assert project["project"]["dynamic"] == ["version"]
    assert versions.read(ROOT) == trainmaster.__version__
    named = re.compile(rf"trainmaster[-/ =v]*{re.escape(trainmaster.__version__)}\b|SemanticVersion")
    texts = [*documents(), ROOT / "template.yaml", ROOT / "Makefile"]
    found = [str(path.relative_to(ROOT)) for path in texts if named.search(path.read_text(encoding="utf-8"))]
    assert found == []


def test_a_version_that_has_a_tag_is_refused_with_the_next_step() -> None:
    versions.check_untagged("0.1.0", ["v0.0.9", "0.1.0"])
    with pytest.raises(
        VersionError, match=r"0\.1\.0 is released already: there is a tag v0\.1\.0\. .*make version"
    ):
        versions.check_untagged("0.1.0", ["v0.1.0"])


def test_changes_that_are_in_no_commit_are_refused_and_named() -> None:
    versions.check_clean("\n")
    with pytest.raises(VersionError, match=r"(?s)has changes.*\?\? new\.py"):
        versions.check_clean(" M README.md\n?? new.py\n")


@pytest.mark.parametrize(
    ("version", "message"),
    [
        pytest.param("0.1.9", "lower than 0.2.0", id="lower"),
        pytest.param("0.10", "not a valid version", id="two numbers"),
        pytest.param("v0.3.0", "not a valid version", id="with the letter of its tag"),
        pytest.param("0.3.0", "released already", id="tagged"),
    ],
)
def test_a_wrong_next_version_is_refused(version: str, message: str) -> None:
    with pytest.raises(VersionError, match=message):
        versions.check_next(version, current="0.2.0", tags=["v0.3.0"])


@pytest.mark.parametrize("version", ["0.2.0", "0.2.1", "0.10.0", "1.0.0"])
def test_the_next_version_may_be_the_current_one_that_has_no_tag_yet(version: str) -> None:
    versions.check_next(version, current="0.2.0", tags=["v0.1.0"])
