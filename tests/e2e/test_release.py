"""What ``make release`` makes: the same bytes again, and a template with all that it names beside it."""

from pathlib import Path

import pytest
from trainmaster_client.report import Report

from release import archives, building, trials, versions
from tests.markdown import ROOT

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def version() -> str:
    return versions.read(ROOT)


def test_the_packages_are_the_same_each_time_and_the_sources_make_the_wheel(tmp_path: Path) -> None:
    report = Report("release", argv=())
    first, again = (
        dict(zip(("wheel", "sdist"), building.python_packages(tmp_path / name), strict=True))
        for name in ("first", "again")
    )
    trials.same_bytes(report, first, again)
    trials.sdist_makes_the_wheel(report, first["sdist"], first["wheel"])
    assert [one for one in report.checks if not one.ok] == []


def test_the_packaged_stack_is_the_same_each_time_and_whole(tmp_path: Path, version: str) -> None:
    report = Report("release", argv=())
    first, again = (
        building.packaged_stack(tmp_path / name, version=version, home_page=None)
        for name in ("first", "again")
    )
    trials.same_bytes(report, {"stack": first}, {"stack": again})
    trials.template_is_whole(report, trials.unpacked(first, tmp_path / "unpacked"), version)
    assert [one for one in report.checks if not one.ok] == []
    assert archives.files_below(tmp_path / "unpacked").keys() > {f"trainmaster-{version}-stack/Layer.zip"}
