"""Checks what the report must contain, from the facts alone."""

from collections import Counter
from typing import Any

from trainmaster_client.report import Report

Facts = dict[str, Any]

GRAVE = frozenset({"serious", "critical"})
MOST_SECONDS_AFTER_THE_ANSWER = 1.0
"""Most seconds between the API's first answer and the first row; the API's own time is the twin's."""


def check(report: Report) -> None:
    pages: list[Facts] = report.facts["pages"]
    listed = [page for page in pages if page["rows_of_the_api"] is not None]
    report.check(
        "rows-are-the-api-s",
        expected=[page["rows_of_the_api"] for page in listed],
        actual=[page["rows"] for page in listed],
    )
    report.check(
        "console-errors", expected=[], actual=[error for page in pages for error in page["console_errors"]]
    )
    violations = [violation for page in pages for violation in page["policy_violations"]]
    report.check("policy-violations", expected=[], actual=violations)
    if any(page["axe"] is None for page in pages):
        report.skip("axe", reason="axe-core is not installed: npm ci --prefix tests/browser")
    else:
        findings = [(page["page"], page["scheme"], finding) for page in pages for finding in page["axe"]]
        grave = [
            (page, scheme, finding["id"]) for page, scheme, finding in findings if finding["impact"] in GRAVE
        ]
        report.check("axe", expected=[], actual=grave)
        report.facts["axe_findings"] = dict(Counter(finding["id"] for _, _, finding in findings))
    unready = [page["page"] for page in pages if page["state"] != "ready"]
    report.check("every-page-is-ready", expected=[], actual=unready)
    report.check(
        "every-page-has-a-heading",
        expected=[],
        actual=[page["page"] for page in pages if not page["structure"]["headings"]],
    )
    for timing in report.facts["first_row"]:
        _note_time(report, timing)


def _note_time(report: Report, timing: Facts) -> None:
    """Report a time that is too long; it fails nothing, as the machine may have had more to do."""
    after = timing["seconds"] - (timing["seconds_until_the_api_answered"] or 0)
    expected = f"at most {MOST_SECONDS_AFTER_THE_ANSWER} s after the API's answer"
    actual = f"{after:.2f} s, {timing['seconds']:.2f} s after the link was opened"
    name = f"first-row-of-{timing['waiting']}"
    if after <= MOST_SECONDS_AFTER_THE_ANSWER:
        report.check(name, expected=expected, actual=actual, ok=True)
    else:
        report.skip(name, reason=f"warning: {actual}; {expected} where nothing else runs")
