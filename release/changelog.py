"""CHANGELOG.md by its sections: the notes of a version, and Unreleased becoming one. Text in, text out."""

import re
from datetime import date

UNRELEASED = "Unreleased"
_HEADING = re.compile(r"^## \[([^\]]+)\].*$", re.MULTILINE)


class ChangelogError(Exception):
    """The file does not have what is asked for; the message says what to do."""


def sections(text: str) -> dict[str, str]:
    """Return each version's section, newest first, without its heading."""
    headings = list(_HEADING.finditer(text))
    ends = [heading.start() for heading in headings[1:]] + [len(text)]
    return {
        heading[1]: text[heading.end() : end].strip() for heading, end in zip(headings, ends, strict=True)
    }


def notes(text: str, version: str) -> tuple[str, str]:
    """Return the notes of a version and the section they are in: Unreleased, until the version has one.

    Raises:
        ChangelogError: Neither says anything.
    """
    by_version = sections(text)
    name = version if version in by_version else UNRELEASED
    if not by_version.get(name):
        raise ChangelogError(
            f"CHANGELOG.md says nothing of {version}: write under ## [{UNRELEASED}] what users get, "
            f"then make version VERSION={version}"
        )
    return by_version[name], name


def with_version(text: str, version: str, on: date) -> str:
    """Return the file where Unreleased is that version, below a new and empty Unreleased.

    Raises:
        ChangelogError: The version has a section already, or nothing is unreleased.
    """
    by_version = sections(text)
    if version in by_version:
        raise ChangelogError(f"CHANGELOG.md has a section {version} already; take a higher version")
    if not by_version.get(UNRELEASED):
        raise ChangelogError(f"CHANGELOG.md has nothing under ## [{UNRELEASED}]: there is nothing to release")
    return text.replace(f"## [{UNRELEASED}]", f"## [{UNRELEASED}]\n\n## [{version}] - {on.isoformat()}", 1)
