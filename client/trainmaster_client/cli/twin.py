"""``trainmaster local up``: the local twin, with its own options."""

import re
import sys
from importlib import metadata

import typer

from trainmaster_client.cli.training_code import checkout
from trainmaster_client.errors import InvalidArgumentError

_EXTRA = "local"
_NAME = re.compile(r"[\w.-]+")

app = typer.Typer(
    help="Run trainmaster on this machine, without AWS.", no_args_is_help=True, rich_markup_mode=None
)


@app.command(
    add_help_option=False, context_settings={"allow_extra_args": True, "ignore_unknown_options": True}
)
def up(context: typer.Context) -> None:
    """Start the twin; --help shows its options."""
    missing = [name for name in _packages_of_the_twin() if not _is_installed(name)]
    if missing:
        raise InvalidArgumentError(
            f"The twin needs packages that are not installed: {', '.join(missing)}.",
            hint=f"Run: pip install 'trainmaster[{_EXTRA}]'",
        )
    # In a wheel the twin is a folder, so that no package called `local` gets in the way of the user's own.
    sys.path.insert(0, str(checkout()))
    from local.up import main  # noqa: PLC0415  the twin's packages would slow down every other command

    raise typer.Exit(main(context.args) or 0)


def _packages_of_the_twin() -> list[str]:
    """As the installed package says: pyproject.toml is where they are listed."""
    try:
        listed = metadata.requires("trainmaster") or []
    except metadata.PackageNotFoundError:  # the code is on the path, but never was installed
        return []
    wanted = (one for one in listed if re.search(rf"extra == ['\"]{_EXTRA}['\"]", one))
    return [match[0] for one in wanted if (match := _NAME.match(one))]


def _is_installed(package: str) -> bool:
    try:
        metadata.distribution(package)
    except metadata.PackageNotFoundError:
        return False
    return True
