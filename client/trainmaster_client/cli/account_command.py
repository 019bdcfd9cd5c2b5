"""``trainmaster account-check``: its options; what it does is imported when it is called."""

from pathlib import Path
from typing import Annotated

import typer

from trainmaster_client.cli.account_options import Lent
from trainmaster_client.cli.command_options import with_options

_REPORT = Path("build/account-check.json")


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
