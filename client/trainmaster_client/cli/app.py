"""The commands put together, and what an error becomes: one message on stderr and an exit code."""

import sys
from enum import IntEnum

import typer

from trainmaster_client.cli import (
    advise,
    changes,
    jobs,
    plan,
    policy,
    pools,
    ssh,
    submit,
    twin,
    usage,
    violations,
    why,
)
from trainmaster_client.errors import (
    ApiFailedError,
    ApiNotConfiguredError,
    ApiUnreachableError,
    InvalidApiUrlError,
    InvalidArgumentError,
    NotFoundError,
    TrainmasterClientError,
    UnexpectedAnswerError,
)


class ExitCode(IntEnum):
    """Ctrl-C is 130, as in a shell."""

    OK = 0
    REFUSED = 1
    """The API said no, or there is nobody to ask as: credentials, rights, the policy, the job's state."""
    USAGE = 2
    """The command line or the file is wrong; nothing was sent."""
    UNREACHABLE = 3
    """No API found, no answer, or its own failure: the same command may work later."""
    NOT_FOUND = 4
    """No such job, or another team's; no such revision."""


_EXIT_CODES: dict[type[TrainmasterClientError], ExitCode] = {
    InvalidArgumentError: ExitCode.USAGE,
    ApiNotConfiguredError: ExitCode.UNREACHABLE,
    InvalidApiUrlError: ExitCode.UNREACHABLE,
    ApiUnreachableError: ExitCode.UNREACHABLE,
    UnexpectedAnswerError: ExitCode.UNREACHABLE,
    ApiFailedError: ExitCode.UNREACHABLE,
    NotFoundError: ExitCode.NOT_FOUND,
}

_EPILOG = (
    "Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 API not reached, 4 no such job or revision."
)

app = typer.Typer(
    help="Queue, watch and govern SageMaker training jobs.",
    epilog=_EPILOG,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("queue")(jobs.queue)
app.command("show")(jobs.show)
app.command("why")(why.why)
app.command("cancel")(jobs.cancel)
app.command("priority")(changes.priority)
app.command("hold")(changes.hold)
app.command("release")(changes.release)
app.command("submit")(submit.submit)
app.command("pools")(pools.pools)
app.command("plan")(plan.plan)
app.command("advise")(advise.advise)
app.command("ssh")(ssh.ssh)
app.command("usage")(usage.usage)
app.command("violations")(violations.violations)
app.add_typer(policy.app, name="policy")
app.add_typer(twin.app, name="local")


def main() -> None:
    """The entry point."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal without Unicode shows "?", not a traceback
            stream.reconfigure(errors="replace")
    try:
        app(prog_name="trainmaster")
    except TrainmasterClientError as error:
        print(f"trainmaster: {error}", file=sys.stderr)
        sys.exit(_EXIT_CODES.get(type(error), ExitCode.REFUSED))
