"""Tries what a release must pass before it is handed out; each trial notes its checks and what it saw."""

import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from trainmaster_client.report import Report

from release import archives, building, changelog, stack

Document = dict[str, Any]

SAM_ASKS_FOR = ("Author", "Description", "Name", "SemanticVersion")
"""Metadata without which ``sam publish`` fails. Source: AWS SAM guide, "Metadata section properties"."""


def same_bytes(report: Report, first: Mapping[str, Path], again: Mapping[str, Path]) -> None:
    """Check that a second build of the same commit has the same bytes."""
    sums = [{name: archives.sha256(path) for name, path in made.items()} for made in (first, again)]
    for name in first:
        report.check(f"same-bytes-{name}", expected=sums[0][name], actual=sums[1][name])


def sdist_makes_the_wheel(report: Report, sdist: Path, wheel: Path) -> None:
    with TemporaryDirectory() as folder:
        made = archives.sha256(building.wheel_of(sdist, Path(folder)))
    report.check("sdist-makes-the-wheel", expected=archives.sha256(wheel), actual=made)


def changelog_section(report: Report, section: str, version: str) -> None:
    """A rehearsal takes Unreleased; what is tagged has a section of its own."""
    if section == changelog.UNRELEASED:
        command = f"make version VERSION={version}"
        reason = f"its notes are still under [{section}]: `{command}` before the tag"
        report.skip("changelog-section", reason=reason, expected=version)
    else:
        report.check("changelog-section", expected=version, actual=section)


def template_is_whole(report: Report, folder: Path, version: str) -> None:
    """Every file that it names is beside it, and its metadata is what SAM asks for."""
    template = yaml.safe_load((folder / "template.yaml").read_text(encoding="utf-8"))
    application = template["Metadata"][stack.METADATA]
    named = [*stack.code_of(template).values(), application["LicenseUrl"], application["ReadmeUrl"]]
    missing = sorted(name for name in named if not (folder / name).is_file())
    report.check("template-files", expected=[], actual=missing)
    empty = [name for name in SAM_ASKS_FOR if not application.get(name)]
    report.check("template-metadata", expected=[], actual=empty)
    report.check("template-version", expected=version, actual=application["SemanticVersion"])
    sam = str(Path(sys.executable).parent / "sam")
    validated = building.run(
        sam, "validate", "--lint", "--region", "us-east-1", "-t", str(folder / "template.yaml")
    )
    report.check("template-lint", expected=True, actual="is a valid SAM Template" in validated)


def scanners(report: Report, bills: Path) -> None:
    """No finding is open without a reason; the bills of materials go into the folder."""
    _program(report, "scanners", ("tests.scanners", "--bills", str(bills)))


def empty_environment(report: Report, wheel: Path, version: str) -> None:
    """Try the wheel in an environment that has nothing: its version, a twin, one job."""
    document = _program(
        report, "empty-environment", ("tests.first_ten_minutes", "--way", "wheel", "--wheel", str(wheel))
    )
    printed = document["facts"].get("wheel", {}).get("version", "")
    report.check("installed-version", expected=f"trainmaster {version}", actual=printed)


def emulator(report: Report, template: Path) -> None:
    """MiniStack takes the packaged template, and four jobs run on what was deployed."""
    _program(report, "emulator", ("demos.deploy_check", "--template", str(template)))


def _program(report: Report, name: str, words: tuple[str, ...]) -> Document:
    """Run a program that writes a report; its failed checks are this one's."""
    module, *options = words
    with TemporaryDirectory() as folder:
        path = Path(folder) / "report.json"
        try:
            building.run(sys.executable, "-m", module, *options, "--json", str(path))
        except building.BuildError as error:
            if not path.exists():
                report.check(name, expected=[], actual=str(error))
                return {"facts": {}}
        document: Document = json.loads(path.read_text(encoding="utf-8"))
    failed = [check for check in document["checks"] if check["ok"] is False]
    skipped = [check["skipped"] for check in document["checks"] if check["ok"] is None]
    report.check(name, expected=[], actual=failed, ok=bool(document["ok"]))
    report.facts[name] = {
        "checks": len(document["checks"]),
        "skipped": skipped,
        "seconds": document["seconds"],
    }
    return document


def unpacked(archive: Path, folder: Path) -> Path:
    """The packaged stack as its user has it."""
    shutil.unpack_archive(archive, folder)
    return folder / archive.stem
