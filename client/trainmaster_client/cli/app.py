"""The commands put together, and what an error becomes: one message on stderr and an exit code."""

import os
import sys
from importlib import metadata
from typing import Annotated

import typer

from trainmaster_client.api import find_api_url
from trainmaster_client.cli import (
    account_command,
    advise,
    arrays,
    cancellations,
    dashboard,
    doctor_report,
    events,
    history,
    history_export,
    job_logs,
    jobs,
    local_gateway,
    manifest,
    mcp_command,
    plan,
    policy,
    pools,
    preflight_report,
    program_run,
    queue,
    repair,
    results_table,
    simulation,
    ssh,
    submit,
    sweep,
    tensorboard,
    timeline,
    top,
    training_code,
    tune,
    twin,
    usage,
    violations,
)
from trainmaster_client.cli.command_examples import epilog
from trainmaster_client.cli.connection import aws_session
from trainmaster_client.cli.exit_codes import ExitCode, exit_code
from trainmaster_client.cli.grouped_help import GroupedCommands, Panel
from trainmaster_client.cli.screen import print_json, say
from trainmaster_client.errors import TrainmasterClientError
from trainmaster_client.http.answers import VERSION_HEADER
from trainmaster_client.http.transport import SignedTransport

_EPILOG = (
    "Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 API not reached, 4 no such job or revision."
)

app = typer.Typer(
    help="Queue, watch and govern SageMaker training jobs.",
    epilog=_EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    cls=GroupedCommands,
    context_settings={"help_option_names": ["-h", "--help"]},
)

NOT_INSTALLED = "unknown"
"""The code is on the path, but never was installed as a package."""


@app.callback(invoke_without_command=True)
def _options(
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="With --version: as JSON, with the version of the stack.")
    ] = False,
) -> None:
    if version:
        print_version(as_json=as_json)
        raise typer.Exit


app.command("queue", rich_help_panel=Panel.POOLS)(queue.queue)
app.command("show", rich_help_panel=Panel.JOBS)(jobs.show)
app.command("why", rich_help_panel=Panel.JOBS)(jobs.why)
app.command("logs", rich_help_panel=Panel.JOBS)(job_logs.logs)
app.command("history", rich_help_panel=Panel.JOBS)(history.history)
app.command("top", rich_help_panel=Panel.POOLS)(top.top)
app.command("timeline", rich_help_panel=Panel.POOLS)(timeline.timeline)
app.command("events", rich_help_panel=Panel.POOLS)(events.events)
app.command("cancel", rich_help_panel=Panel.JOBS)(cancellations.cancel)
app.command("priority", rich_help_panel=Panel.JOBS)(jobs.priority)
app.command("hold", rich_help_panel=Panel.JOBS)(jobs.hold)
app.command("release", rich_help_panel=Panel.JOBS)(jobs.release)
app.command("after", rich_help_panel=Panel.JOBS)(jobs.after)
app.command("tree", rich_help_panel=Panel.JOBS)(jobs.tree)
app.command("submit", rich_help_panel=Panel.JOBS)(submit.submit)
app.command("sweep", rich_help_panel=Panel.JOBS)(sweep.sweep)
app.command("arrays", rich_help_panel=Panel.JOBS)(arrays.arrays)
app.command("results", rich_help_panel=Panel.JOBS)(results_table.results)
app.command("rerun", rich_help_panel=Panel.JOBS)(arrays.rerun)
app.command("throttle", rich_help_panel=Panel.JOBS)(arrays.throttle)
app.command("run", rich_help_panel=Panel.JOBS, context_settings={"allow_interspersed_args": False})(
    program_run.run
)
app.command("pools", rich_help_panel=Panel.POOLS)(pools.pools)
app.command("plan", rich_help_panel=Panel.JOBS)(plan.plan)
app.command("advise", rich_help_panel=Panel.JOBS)(advise.advise)
app.command("manifest", rich_help_panel=Panel.JOBS)(manifest.print_manifest)
app.command("ssh", rich_help_panel=Panel.JOBS)(ssh.ssh)
app.command("forward", rich_help_panel=Panel.JOBS)(ssh.forward)
app.command("tensorboard", rich_help_panel=Panel.JOBS)(tensorboard.tensorboard)
app.command("usage", rich_help_panel=Panel.MONEY)(usage.usage)
app.command("violations", rich_help_panel=Panel.MONEY)(violations.violations)
app.command("history-export", rich_help_panel=Panel.ADMIN)(history_export.history_export)
app.command("simulate", rich_help_panel=Panel.ADMIN)(simulation.simulate)
app.command("repair", rich_help_panel=Panel.ADMIN)(repair.repair)
app.command("doctor", rich_help_panel=Panel.SETUP, cls=doctor_report.JsonWithoutPath)(doctor_report.doctor)
app.command("dashboard", rich_help_panel=Panel.POOLS)(dashboard.dashboard)
app.command("gateway", rich_help_panel=Panel.SETUP)(local_gateway.gateway)
app.command("mcp", rich_help_panel=Panel.SETUP)(mcp_command.mcp)
app.command("preflight", rich_help_panel=Panel.SETUP)(preflight_report.preflight)
app.command("account-check", rich_help_panel=Panel.SETUP)(account_command.account_check)
app.command("training-code", rich_help_panel=Panel.SETUP)(training_code.training_code)
app.add_typer(policy.app, name="policy", rich_help_panel=Panel.ADMIN)
app.add_typer(tune.app, name="tune", rich_help_panel=Panel.JOBS)
app.add_typer(twin.app, name="local", rich_help_panel=Panel.SETUP)
for _group, _typer in (("", app), ("policy ", policy.app), ("tune ", tune.app)):
    for _command in _typer.registered_commands:
        _name = _command.name or getattr(_command.callback, "__name__", "")
        _command.epilog = epilog(f"{_group}{_name}")


def main() -> None:
    """Run the command line and exit with its code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal without Unicode shows "?", not a traceback
            stream.reconfigure(errors="replace")
    try:
        try:
            _run()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
        sys.exit(ExitCode.REFUSED)
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)


def _run() -> None:
    try:
        app(prog_name="trainmaster")
    except TrainmasterClientError as error:
        say("\n".join([f"trainmaster: {error}", *getattr(error, "__notes__", ())]))
        sys.exit(exit_code(error))


def _drop_output() -> None:
    """Discard further output, as its reader is gone (``| head``); else Python complains at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_version(*, as_json: bool) -> None:
    if as_json:
        print_json({"client": client_version(), "stack": _stack_version()})
    else:
        print(f"trainmaster {client_version()}")


def client_version() -> str:
    try:
        return metadata.version("trainmaster")
    except metadata.PackageNotFoundError:
        return NOT_INSTALLED


def _stack_version() -> str | None:
    """Ask the API for the version of the stack; None if it gives no answer or names no version."""
    try:
        session = aws_session()
        answer = SignedTransport(find_api_url(None, session), session).send("GET", "/pools")
    except TrainmasterClientError:
        return None
    return answer.headers.get(VERSION_HEADER)
