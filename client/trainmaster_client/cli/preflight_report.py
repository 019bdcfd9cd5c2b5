"""``trainmaster preflight``: what an account lacks before a deployment, with the commands."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import boto3
import typer
from botocore.exceptions import BotoCoreError, ClientError

from trainmaster_client.cli.command_options import with_options
from trainmaster_client.cli.screen import busy, print_json, print_lines
from trainmaster_client.errors import CredentialsError
from trainmaster_client.preflight.account_reading import AccountReader
from trainmaster_client.preflight.deployment_checks import Wanted, decided_parameters, examine, passes
from trainmaster_client.preflight.preflight_findings import Finding, Level
from trainmaster_client.preflight.saved_parameters import parsed, read_saved
from trainmaster_client.report import Check, Report

_ID_WIDTH = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The deployment as far as it is known."""

    vpc: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="A VPC from which people use the queue; may be repeated."),
    ] = None
    parameter: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A parameter of the stack; may be repeated."),
    ] = None
    config: Annotated[
        Path, typer.Option(metavar="FILE", help="Where `sam deploy --guided` saved earlier answers.")
    ] = Path("samconfig.toml")
    stack_name: Annotated[str | None, typer.Option(help="Name of the stack.", show_default="trainmaster")] = (
        None
    )


@with_options
def preflight(
    *,
    planned: Planned,
    strict: Annotated[bool, typer.Option("--strict", help="Let a warning exit with 1 as well.")] = False,
    report_file: Annotated[
        Path | None,
        typer.Option("--json", metavar="PATH", help="Write a report as JSON; - prints it and nothing else."),
    ] = None,
) -> None:
    """Ask the AWS account what a first deployment needs and what would go wrong; changes nothing."""
    is_json = report_file == Path("-")
    findings, wanted = findings_of(planned)
    report = report_of(findings, wanted)
    if is_json:
        print_json(report.as_json())
    else:
        print_lines([line for finding in findings for line in lines_of(finding)])
        print_lines(verdict(findings))
        if report_file is not None:
            report.write(report_file)
    is_warned = strict and any(finding.level is Level.WARN for finding in findings)
    raise typer.Exit(0 if report.ok and not is_warned else 1)


def findings_of(planned: Planned) -> tuple[list[Finding], Wanted]:
    """Read the account and hold it against the plan. Raises CredentialsError where nothing can be asked."""
    saved = read_saved(planned.config)
    given = parsed(planned.parameter or (), "--parameter")
    wanted = Wanted(
        stack=planned.stack_name or saved.stack or "trainmaster",
        vpcs=tuple(planned.vpc or ()),
        parameters=saved.parameters | given,
    )
    callers = [arn for arn in wanted.parameters.get("CallerPrincipalArns", "").split(",") if arn]
    try:
        session = boto3.Session() if saved.region is None else boto3.Session(region_name=saved.region)
        with busy("asking the account"):
            account = AccountReader(session).read(stack=wanted.stack, principals=callers)
    except (BotoCoreError, ClientError) as error:
        raise CredentialsError(f"{error}.") from error
    return list(examine(account, wanted)), wanted


def lines_of(finding: Finding) -> Iterator[str]:
    yield f"{finding.level:<4}  {finding.id:<{_ID_WIDTH}}  {finding.text}"
    for command in finding.commands:
        yield f"        {command}"


def verdict(findings: Sequence[Finding]) -> Iterator[str]:
    """Say the parameters that the account decides, then how it went, in one line each."""
    if decided := decided_parameters(findings):
        yield "parameters: " + " ".join(f"{name}={value}" for name, value in decided.items())
    count = sum(finding.level is Level.WARN for finding in findings)
    warnings = f", {count} warning{'s' if count != 1 else ''}" if count else ""
    yield f"preflight: {'ok' if passes(findings) else 'NOT ok'}{warnings}"


def report_of(findings: Sequence[Finding], wanted: Wanted) -> Report:
    report = Report("preflight")
    for finding in findings:
        is_ok = {Level.OK: True, Level.FAIL: False}.get(finding.level)
        report.checks.append(
            Check(
                id=finding.id,
                ok=is_ok,
                expected="no objection",
                actual=finding.text,
                skipped=finding.text if is_ok is None else None,
            )
        )
    report.facts = {
        "stack": wanted.stack,
        "parameters": decided_parameters(findings),
        "commands": [command for finding in findings for command in finding.commands],
    }
    return report
