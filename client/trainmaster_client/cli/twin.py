"""``trainmaster local up``: the local twin, with its own options."""

import sys

import typer

from trainmaster_client.cli.training_code import checkout
from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.errors.missing_packages import install_hint, missing_of

_EXTRA = "local"

app = typer.Typer(
    help="Run trainmaster on this machine, without AWS.", no_args_is_help=True, rich_markup_mode=None
)


@app.command(
    add_help_option=False, context_settings={"allow_extra_args": True, "ignore_unknown_options": True}
)
def up(context: typer.Context) -> None:
    """Start the twin; --help shows its options."""
    if missing := missing_of(_EXTRA):
        raise InvalidArgumentError(
            f"The twin needs packages that are not installed: {', '.join(missing)}.",
            hint=install_hint(_EXTRA),
        )
    # In a wheel the twin is a folder, so that no package called `local` gets in the way of the user's own.
    sys.path.insert(0, str(checkout()))
    from local.up import main  # noqa: PLC0415  the twin's packages would slow down every other command

    raise typer.Exit(main(context.args) or 0)
