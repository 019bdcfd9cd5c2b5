"""``trainmaster local up``: the local twin, with its own options."""

import typer

app = typer.Typer(
    help="Run trainmaster on this machine, without AWS.", no_args_is_help=True, rich_markup_mode=None
)


@app.command(
    add_help_option=False, context_settings={"allow_extra_args": True, "ignore_unknown_options": True}
)
def up(context: typer.Context) -> None:
    """Start the twin; --help shows its options."""
    from local.up import main  # noqa: PLC0415  the twin's packages would slow down every other command

    raise typer.Exit(main(context.args) or 0)
