"""What ``make release`` makes: the same bytes again, and a template with all its files, also in a bucket."""

import sys
from pathlib import Path

import boto3
import pytest
import yaml
from trainmaster_client.report import Report

from demos.deployed.ministack import PROGRAM, REGION, ROOT_KEY, running_ministack
from release import archives, building, stack, trials, versions
from tests.markdown import ROOT

pytestmark = pytest.mark.long
BUCKET = "my-publishing-bucket"
NO_SAGEMAKER = "http://127.0.0.1:9"
"""Nothing is deployed: nobody asks for it."""


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


@pytest.mark.skipif(not PROGRAM.exists(), reason="MiniStack is not installed; make upgrade-check installs it")
def test_sam_package_puts_all_that_the_packaged_stack_names_into_the_bucket(
    tmp_path: Path, version: str
) -> None:
    archive = building.packaged_stack(tmp_path / "made", version=version, home_page=None)
    folder = trials.unpacked(archive, tmp_path / "unpacked")
    options = ("--s3-bucket", BUCKET, "--output-template-file", "packaged.yaml")
    with running_ministack(tmp_path, sagemaker_url=NO_SAGEMAKER) as ministack:
        s3 = boto3.Session(ROOT_KEY, ROOT_KEY, region_name=REGION).client(
            "s3", endpoint_url=ministack.endpoint_url
        )
        s3.create_bucket(Bucket=BUCKET)
        sam = str(Path(sys.executable).parent / "sam")
        building.run(sam, "package", *options, cwd=folder, env=ministack.environment())
        found = {f"s3://{BUCKET}/{one['Key']}" for one in s3.list_objects_v2(Bucket=BUCKET)["Contents"]}
    packaged = yaml.safe_load((folder / "packaged.yaml").read_text(encoding="utf-8"))
    application = packaged["Metadata"][stack.METADATA]
    assert {*stack.code_of(packaged).values(), application["LicenseUrl"], application["ReadmeUrl"]} == found
