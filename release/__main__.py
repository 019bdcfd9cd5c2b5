"""``python -m release``: cut the next version, and make and check what is handed out of a commit.

``build`` writes build/release/VERSION. It publishes nothing and makes no tag.
"""

import argparse
import shutil
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from trainmaster_client.report import Report

from release import archives, building, changelog, trials, versions
from release.building import ROOT

CHANGELOG = ROOT / "CHANGELOG.md"
OUT = Path("build/release")
_REFUSED = 2
"""Exit code for what the user can cure before anything is built."""


def main(argv: Sequence[str]) -> int:
    arguments = _parser().parse_args(argv)
    try:
        if arguments.command == "prepare":
            return prepare(arguments.version)
        if arguments.command == "notes":
            print(changelog.notes(CHANGELOG.read_text(encoding="utf-8"), arguments.version)[0])
            return 0
        return build(arguments.home_page, argv)
    except (versions.VersionError, changelog.ChangelogError, building.BuildError) as error:
        print(f"release: {error}", file=sys.stderr)
        return _REFUSED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    help_text = "write the version, and make the changelog's Unreleased its section; then commit"
    commands.add_parser("prepare", help=help_text).add_argument("version", metavar="X.Y.Z")
    commands.add_parser("notes", help="print the notes of one version").add_argument(
        "version", metavar="X.Y.Z"
    )
    building_it = commands.add_parser("build", help="make build/release/VERSION of the commit, and check it")
    building_it.add_argument(
        "--home-page", metavar="URL", help="of page and sources, for the template's metadata"
    )
    return parser


def prepare(version: str) -> int:
    versions.check_next(version, current=versions.read(ROOT), tags=_tags())
    text = changelog.with_version(CHANGELOG.read_text(encoding="utf-8"), version, datetime.now(UTC).date())
    CHANGELOG.write_text(text, encoding="utf-8")
    versions.write(ROOT, version)
    print(f"{version} is in {versions.HOME} and CHANGELOG.md; commit both, then make release")
    return 0


def build(home_page: str | None, argv: Sequence[str]) -> int:
    """Make everything, check it, write the report; the exit code."""
    version = versions.read(ROOT)
    versions.check_clean(building.run("git", "status", "--porcelain"))
    versions.check_untagged(version, _tags())
    notes, section = changelog.notes(CHANGELOG.read_text(encoding="utf-8"), version)
    out = ROOT / OUT / version
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    report = Report("release", argv=("python", "-m", "release", *argv))
    report.facts |= {"version": version, "tag": versions.tag_of(version)}
    with TemporaryDirectory(prefix="release-") as folder:
        _make(report, out, Path(folder), home_page)
        (out / f"trainmaster-{version}-notes.md").write_text(f"{notes}\n", encoding="utf-8")
        trials.changelog_section(report, section, version)
        _try(report, out, Path(folder))
    report.facts["files"] = archives.write_sums(out)
    return report.finish(out / "report.json")


def _make(report: Report, out: Path, folder: Path, home_page: str | None) -> None:
    """Twice, held to each other; the first is kept."""
    version: str = report.facts["version"]
    made = []
    for number in ("first", "again"):
        _say(f"wheel, source distribution and packaged stack of {version}, {number} ...")
        wheel, sdist = building.python_packages(folder / number / "dist")
        archive = building.packaged_stack(folder / number, version=version, home_page=home_page)
        made.append({"wheel": wheel, "sdist": sdist, "stack": archive})
    trials.same_bytes(report, *made)
    for path in made[0].values():
        shutil.copyfile(path, out / path.name)
    trials.sdist_makes_the_wheel(report, made[0]["sdist"], made[0]["wheel"])


def _try(report: Report, out: Path, folder: Path) -> None:
    version: str = report.facts["version"]
    (wheel,), (archive,) = out.glob("*.whl"), out.glob("*-stack.zip")
    packaged = trials.unpacked(archive, folder / "unpacked")
    _say("the packaged template ...")
    trials.template_is_whole(report, packaged, version)
    _say("scanners and bills of materials ...")
    trials.scanners(report, out / "sbom")
    _say("the wheel in an empty environment ...")
    trials.empty_environment(report, wheel, version)
    _say("the packaged template on an emulator, with the four jobs ...")
    trials.emulator(report, packaged / "template.yaml")


def _tags() -> list[str]:
    return building.run("git", "tag", "--list").split()


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
