"""``trainmaster doctor``: what is wrong between here and the queue, and what to do about it."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from trainmaster_client.cli.screen import busy, console, print_json, print_lines
from trainmaster_client.doctor.checks import STEPS, Step, examine
from trainmaster_client.doctor.findings import Finding, Seen
from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.http.answers import printable
from trainmaster_client.report import Check, Report

_ID_WIDTH = 15
_STANDARD_OUTPUT = Path("-")


class JsonWithoutPath(TyperCommand):
    """``--json`` without a path is ``--json -``: on standard output."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401  typer's own copy of click
        rewritten = list(args)
        for index, argument in enumerate(args):
            rest = args[index + 1 :]
            if argument == "--json" and (not rest or rest[0].startswith("--")):
                rewritten[index] = "--json=-"
        return super().parse_args(ctx, rewritten)


def doctor(
    *,
    report_file: Annotated[
        Path | None,
        typer.Option(
            "--json",
            metavar="[PATH]",
            help="Print the report as JSON and nothing else, or write it to PATH; else no file is written.",
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="End with exit code 1 for a warning, too.", show_default=False)
    ] = False,
) -> None:
    """Check everything from the configuration to the account, and say how to fix it."""
    report = Report("doctor")
    seen = Seen(env=os.environ, now=lambda: datetime.now(UTC))
    remedies: dict[str, Any] = {}
    seen.facts["remedies"] = remedies
    report.facts = seen.facts
    examination = examine(seen)
    is_json = report_file == _STANDARD_OUTPUT
    warnings = 0
    for step in STEPS:
        with busy(f"looking at {step.id}"):
            finding = next(examination)
        report.checks.append(_check(step, finding))
        warnings += finding.word == "warn"
        if finding.advice is not None:
            remedies[step.id] = {"trouble": finding.trouble, "remedy": finding.advice.remedy}
        if not is_json:
            print_lines(finding_lines(step, finding, width=console().width))
    if is_json:
        print_json(report.as_json())
    else:
        _conclude(report, warnings, report_file)
    raise typer.Exit(0 if report.ok and not (strict and warnings) else 1)


def finding_lines(step: Step, finding: Finding, *, width: int) -> Iterator[str]:
    """Yield a line, in a narrow terminal two; then cause and remedy."""
    shown = printable(finding.why if finding.word == "skip" else str(finding.actual))
    line = f"{finding.word:<4}  {step.id:<{_ID_WIDTH}}  {shown}"
    yield from [line] if len(line) <= width else [f"{finding.word:<4}  {step.id}", f"        {shown}"]
    if finding.advice is not None:
        yield f"        {finding.advice.cause}"
        yield f"        -> {finding.advice.remedy} [{finding.trouble}]"


def _check(step: Step, finding: Finding) -> Check:
    return Check(
        id=step.id,
        ok=finding.ok,
        expected=step.expected,
        actual=finding.actual,
        skipped=finding.why if finding.ok is None else None,
    )


def _conclude(report: Report, warnings: int, file: Path | None) -> None:
    """Print the verdict as the last line, and write the report where somebody has said where it is to be."""
    failed = sum(check.ok is False for check in report.checks)
    counts = [_counted(failed, "failure"), _counted(warnings, "warning")]
    verdict = ", ".join([f"doctor: {'ok' if report.ok else 'NOT ok'}", *(count for count in counts if count)])
    if file is None:
        print_lines([verdict])
        return
    try:
        report.write(file)
    except OSError as error:
        print_lines([f"{verdict}, without a report"])
        refusal = InvalidArgumentError(f"{file}: {error.strerror}.", hint="Name another with --json.")
        raise refusal from error
    print_lines([f"{verdict}, report in {file}"])


def _counted(count: int, word: str) -> str:
    """Count in words: ``2 warnings``; empty for none."""
    return f"{count} {word}{'' if count == 1 else 's'}" if count else ""
