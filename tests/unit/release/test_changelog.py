"""The notes of one version, and Unreleased becoming one."""

from datetime import date

import pytest

from release.changelog import ChangelogError, notes, sections, with_version
from release.versions import read
from tests.markdown import ROOT, text_of

DAY = date(2026, 12, 1)
TEXT = """# Changelog

For users.

## [Unreleased]

### Added

- A timeline.

## [0.1.0] - 2026-11-01

### Fixed

- Counts.

#### A part

- More.
"""


def test_a_section_ends_where_the_next_version_begins() -> None:
    assert sections(TEXT) == {
        "Unreleased": "### Added\n\n- A timeline.",
        "0.1.0": "### Fixed\n\n- Counts.\n\n#### A part\n\n- More.",
    }


def test_a_version_without_a_section_has_the_notes_of_what_is_unreleased() -> None:
    assert notes(TEXT, "0.2.0") == ("### Added\n\n- A timeline.", "Unreleased")
    assert notes(TEXT, "0.1.0")[1] == "0.1.0"


def test_a_changelog_that_says_nothing_is_refused_with_what_to_do() -> None:
    empty = TEXT.replace("### Added\n\n- A timeline.\n", "")
    with pytest.raises(
        ChangelogError, match=r"write under ## \[Unreleased\] .* make version VERSION=0\.2\.0"
    ):
        notes(empty, "0.2.0")
    with pytest.raises(ChangelogError, match="nothing to release"):
        with_version(empty, "0.2.0", DAY)


def test_what_is_unreleased_becomes_the_version_below_a_new_section() -> None:
    cut = with_version(TEXT, "0.2.0", DAY)
    assert list(sections(cut)) == ["Unreleased", "0.2.0", "0.1.0"]
    assert sections(cut)["Unreleased"] == ""
    assert notes(cut, "0.2.0") == ("### Added\n\n- A timeline.", "0.2.0")
    assert "\n## [0.2.0] - 2026-12-01\n" in cut
    assert cut.replace("\n\n## [0.2.0] - 2026-12-01", "") == TEXT


def test_a_version_is_cut_once() -> None:
    with pytest.raises(ChangelogError, match=r"has a section 0\.1\.0 already"):
        with_version(TEXT, "0.1.0", DAY)


def test_the_changelog_of_this_tree_has_notes_for_its_version() -> None:
    said, _ = notes(text_of("CHANGELOG.md"), read(ROOT))
    assert "### Added" in said
