"""``trainmaster ssh``: a shell in the container of a running attempt, through AWS Systems Manager."""

import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, NoReturn

import boto3
import typer
from botocore.exceptions import BotoCoreError, ClientError

from trainmaster_client.cli.connection import aws_session, connect
from trainmaster_client.cli.jobs import JobName
from trainmaster_client.cli.remote_debug import (
    AWS_CLI,
    INSTALL,
    PLUGIN,
    Description,
    after_refusal,
    command,
    not_running,
    obstacles,
    target,
)
from trainmaster_client.cli.screen import print_json, say
from trainmaster_client.http.printable import printable
from trainmaster_client.jobs.job_views import JobView, job_view

NO_SESSION = 1
"""The exit code when something is missing; that of the session otherwise."""

Host = Annotated[int, typer.Option(min=1, help="Which host, as in algo-1 of its log streams.")]
Print = Annotated[bool, typer.Option("--print", help="Only print the command; start nothing.")]
Json = Annotated[
    bool, typer.Option("--json", help="Print the command and its target as JSON; start nothing.")
]


def ssh(job: JobName, *, host: Host = 1, print_: Print = False, as_json: Json = False) -> None:
    """Open a shell in a running job's container. Needs the AWS CLI with its Session Manager plugin."""
    view = job_view(connect().job(job, estimate=False))
    if why := not_running(view):
        _refuse(view, [why])
    session = aws_session()
    description = _described(session, view)
    if found := list(obstacles(description, host)):
        _refuse(view, found)
    line = command(view.training_job_name, host, session.region_name)
    if as_json:
        print_json({"command": line, "target": target(view.training_job_name, host)})
    elif print_:
        print(shlex.join(line))
    else:
        _run(line, view, host, description)


def _described(session: boto3.Session, job: JobView) -> Description:
    try:
        client = session.client("sagemaker")
        return client.describe_training_job(TrainingJobName=job.training_job_name)
    except ClientError as error:
        code, message = (printable(error.response["Error"].get(key)) for key in ("Code", "Message"))
        _refuse(job, [f"SageMaker does not describe {job.training_job_name}: {code}: {message}"])
    except (BotoCoreError, ValueError) as error:  # ValueError: AWS_ENDPOINT_URL is no URL
        _refuse(job, [f"SageMaker cannot be asked: {printable(error)}"])


def _run(line: list[str], job: JobView, host: int, description: Description) -> None:
    if missing := [tool for tool in (AWS_CLI, PLUGIN) if shutil.which(tool) is None]:
        _refuse(job, [f"{tool} is not installed, see {INSTALL[tool]}" for tool in missing])
    with _leaving_interrupts_to_the_session():
        code = subprocess.run(line, check=False).returncode  # noqa: S603  our own words, no shell
    if code:
        say("\n".join(after_refusal(job.training_job_name, host, description)))
    raise typer.Exit(code)


@contextmanager
def _leaving_interrupts_to_the_session() -> Iterator[None]:
    """Ctrl-C is for the program in the container. A handler, because a child would inherit "ignored"."""
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _refuse(job: JobView, reasons: list[str]) -> NoReturn:
    say("\n".join(f"trainmaster: no session with {job.name}: {why}." for why in reasons))
    raise typer.Exit(NO_SESSION)
