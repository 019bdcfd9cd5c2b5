from dataclasses import replace

import pytest

from tests.scanners.findings import (
    Finding,
    Reason,
    judge,
    locked_in,
    of_checkov,
    of_examples,
    of_hadolint,
    of_licences,
    of_rights,
)

OPEN = Finding("checkov", "CKV_1", "ApiFunction", "says")
REASON = Reason(scanner="checkov", id="CKV_1", on=("*Function",), because="it is so")


def test_a_finding_with_a_reason_stays_open() -> None:
    verdict = judge([OPEN, OPEN], [REASON])
    assert verdict.ok
    assert verdict.explained == ((OPEN, REASON),)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(Finding("checkov", "CKV_2", "ApiFunction", "says"), id="of another check"),
        pytest.param(Finding("checkov", "CKV_1", "Table", "says"), id="on another resource"),
        pytest.param(Finding("cloudsplaining", "CKV_1", "ApiFunction", "says"), id="of another scanner"),
    ],
)
def test_a_finding_that_no_reason_is_about_is_a_fault(other: Finding) -> None:
    verdict = judge([OPEN, other], [REASON])
    assert not verdict.ok
    assert verdict.unexplained == (other,)


def test_a_reason_for_what_nobody_finds_is_a_fault() -> None:
    verdict = judge([], [REASON])
    assert not verdict.ok
    assert verdict.idle == (REASON,)


def test_so_is_a_place_where_nobody_finds_it_any_more() -> None:
    verdict = judge([OPEN], [replace(REASON, on=("*Function", "Gone"))])
    assert not verdict.ok
    assert verdict.idle == (replace(REASON, on=("Gone",)),)


def test_the_scanners_reports_are_read() -> None:
    failed = {"check_id": "CKV_1", "resource": "AWS::Serverless::Function.ApiFunction", "check_name": "says"}
    report = {"results": {"failed_checks": [failed]}}
    assert list(of_checkov(report)) == list(of_checkov([report])) == [OPEN]
    assert [str(one) for one in of_rights({"Role": {"risk": ["s3:PutObject"], "none": []}})] == [
        "cloudsplaining risk Role: s3:PutObject"
    ]
    packages = [{"Name": "a", "License": "MIT"}, {"Name": "b", "License": "GPL-3.0"}]
    assert [one.on for one in of_licences(packages, ["MIT"])] == ["b"]


def test_what_is_wrong_with_an_example_names_its_file() -> None:
    linted = [{"code": "DL3007", "file": "Dockerfile", "line": 1, "message": "no latest"}]
    assert [str(one) for one in of_hadolint(linted)] == ["hadolint DL3007 Dockerfile: line 1: no latest"]
    report = {"a.yaml": ["spec.x: unknown"], "b.yaml": ["no schema: Strange"], "c.yaml": []}
    assert [(one.id, one.on) for one in of_examples(report)] == [
        ("invalid", "a.yaml"),
        ("no-schema", "b.yaml"),
    ]


def test_a_lock_s_packages_are_read_without_hashes_and_comments() -> None:
    text = "# why\na==1 \\\n    --hash=sha256:0\nb==2\n"
    assert list(locked_in(text)) == ["a==1", "b==2"]
