"""What the report must contain: each check from the facts alone."""

from collections import Counter
from typing import Any

from trainmaster_client.report import Report

Facts = dict[str, Any]

GRAVE = frozenset({"serious", "critical"})
MOST_SECONDS_AFTER_THE_ANSWER = 1.0
"""From the API's first answer to the first row; the API's own time is the twin's."""


def check(report: Report) -> None:
    pages: list[Facts] = report.facts["pages"]
    listed = [one for one in pages if one["rows_of_the_api"] is not None]
    report.check(
        "rows-are-the-api-s",
        expected=[one["rows_of_the_api"] for one in listed],
        actual=[one["rows"] for one in listed],
    )
    report.check(
        "console-errors", expected=[], actual=[one for page in pages for one in page["console_errors"]]
    )
    violations = [one for page in pages for one in page["policy_violations"]]
    report.check("policy-violations", expected=[], actual=violations)
    if any(page["axe"] is None for page in pages):
        report.skip("axe", reason="axe-core is not installed: npm ci --prefix tests/browser")
    else:
        found = [(page["page"], page["scheme"], one) for page in pages for one in page["axe"]]
        grave = [(page, scheme, one["id"]) for page, scheme, one in found if one["impact"] in GRAVE]
        report.check("axe", expected=[], actual=grave)
        report.facts["axe_findings"] = dict(Counter(one["id"] for _, _, one in found))
    unready = [one["page"] for one in pages if one["state"] != "ready"]
    report.check("every-page-is-ready", expected=[], actual=unready)
    report.check(
        "every-page-has-a-heading",
        expected=[],
        actual=[one["page"] for one in pages if not one["structure"]["headings"]],
    )
    for one in report.facts["first_row"]:
        _note_time(report, one)


def _note_time(report: Report, one: Facts) -> None:
    """Say a time that is too long; it fails nothing, for the machine may have had more to do."""
    after = one["seconds"] - (one["seconds_until_the_api_answered"] or 0)
    expected = f"at most {MOST_SECONDS_AFTER_THE_ANSWER} s after the API's answer"
    actual = f"{after:.2f} s, {one['seconds']:.2f} s after the link was opened"
    name = f"first-row-of-{one['waiting']}"
    if after <= MOST_SECONDS_AFTER_THE_ANSWER:
        report.check(name, expected=expected, actual=actual, ok=True)
    else:
        report.skip(name, reason=f"warning: {actual}; {expected} where nothing else runs")
