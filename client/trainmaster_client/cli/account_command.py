"""``trainmaster account-check``: its options; what it does is imported when it is called."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from trainmaster_client.cli.command_options import with_options

_REPORT = Path("build/account-check.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lent:
    """Means that the user gives to the check: a role, a bucket, an image, a GPU type."""

    role: Annotated[
        str | None,
        typer.Option(help="ARN of a role that training jobs may run under.", envvar="TRAINMASTER_ROLE"),
    ] = None
    bucket: Annotated[
        str | None,
        typer.Option(help="Bucket that the role may write to.", envvar="TRAINMASTER_BUCKET"),
    ] = None
    image: Annotated[
        str | None,
        typer.Option(
            help="Training image with a shell; without it a public one of AWS, for PyTorch on CPUs."
        ),
    ] = None
    gpu: Annotated[
        str | None,
        typer.Option(metavar="TYPE", help="Also check what needs an accelerated type, such as ml.g5.xlarge."),
    ] = None
    starve: Annotated[
        bool, typer.Option("--starve", help="Also let a pending time of 30 minutes run out; needs --gpu.")
    ] = False


@with_options
def account_check(
    *,
    lent: Lent,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before it costs money.")] = False,
    report_file: Annotated[
        Path | None,
        typer.Option("--json", metavar="PATH", help="Where to write the report.", show_default=str(_REPORT)),
    ] = None,
) -> None:
    """Ask a real account, with small training jobs, whether AWS does what the code assumes."""
    from trainmaster_client.cli.account_report import check_account  # noqa: PLC0415  slows down all others

    raise typer.Exit(check_account(lent, yes=yes, file=report_file or _REPORT))
