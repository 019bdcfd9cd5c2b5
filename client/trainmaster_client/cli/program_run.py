"""``trainmaster run``: a program whose source stays as it is, with the hooks in it and in its children."""

import os
import shutil
from typing import Annotated, NoReturn

import typer

from trainmaster_client.api import find_api_url
from trainmaster_client.cli.connection import aws_session
from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.hooks.process_hooks import environment_of_run
from trainmaster_client.hooks.training_job_calls import check_on_unreachable
from trainmaster_client.http.transport import checked_url

_DEAF = frozenset("IES")
"""Options of Python with which it reads no PYTHONPATH, or imports no sitecustomize."""


def run(
    command: Annotated[
        list[str], typer.Argument(metavar="-- PROGRAM [ARGUMENTS]", help="As on your command line.")
    ],
    *,
    api_url: Annotated[
        str | None, typer.Option(help="Else TRAINMASTER_API_URL, else the SSM parameter.")
    ] = None,
    on_unreachable: Annotated[
        str, typer.Option(help="Where the API gives no answer: raise, or direct, which bypasses the queue.")
    ] = "raise",
) -> NoReturn:
    """Run a Python program, and those it starts, with all training through the queue."""
    check_on_unreachable(on_unreachable)
    program = shutil.which(command[0])
    if program is None:
        raise InvalidArgumentError(
            f"{command[0]!r} is not a program.", hint="Use e.g. trainmaster run -- python train.py"
        )
    if option := _deaf_option(command):
        raise InvalidArgumentError(
            f"{command[0]} {option} ignores the environment, so it cannot be hooked.",
            hint=f"Leave {option} out, or call trainmaster_client.hook.install() in the program.",
        )
    url = find_api_url(api_url, aws_session())
    checked_url(url)
    environment = environment_of_run(os.environ, api_url=url, on_unreachable=on_unreachable)
    os.execve(program, command, environment)  # noqa: S606  that is the command's purpose


def _deaf_option(command: list[str]) -> str | None:
    """Find the option that would keep a Python, called by name, from loading the hooks."""
    if not os.path.basename(command[0]).startswith("python"):  # noqa: PTH119  a name, not a file
        return None
    for argument in command[1:]:
        if not argument.startswith("-") or argument[1:2] in {"c", "m"}:
            return None
        if not argument.startswith("--") and _DEAF.intersection(argument):
            return argument
    return None
