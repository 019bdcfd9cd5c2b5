"""Sessions with the container of a running attempt: a shell or a forwarded port, and what stands in the way.

Source: SageMaker developer guide, Access a training container through AWS Systems Manager for remote
debugging.
"""

import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Annotated, Any, NoReturn

import boto3
import typer
from botocore.exceptions import BotoCoreError, ClientError

from trainmaster_client.cli.connection import aws_session, connect
from trainmaster_client.cli.screen import print_json, say
from trainmaster_client.http.answers import printable
from trainmaster_client.jobs.job_views import JobView, job_view
from trainmaster_client.jobs.progress import place_line

Description = Mapping[str, Any]
"""An answer of DescribeTrainingJob."""

AWS_CLI, PLUGIN = "aws", "session-manager-plugin"
FORWARDS = "AWS-StartPortForwardingSession"
"""Document of Systems Manager; without one a session is a shell."""
_DOCS = "docs.aws.amazon.com"
INSTALL = {
    AWS_CLI: f"{_DOCS}/cli/latest/userguide/getting-started-install.html",
    PLUGIN: f"{_DOCS}/systems-manager/latest/userguide/session-manager-working-with-install-plugin.html",
}
HOW_TO_ENABLE = (
    "remote debugging is off. It is turned on when a job is submitted: enable_remote_debug=True of an"
    " estimator, with_remote_debug_config(RemoteDebugConfig(enable_remote_debug=True)) of a ModelTrainer, or"
    ' "RemoteDebugConfig": {"EnableRemoteDebug": true} in the request. The queue does not turn it on later,'
    " and the policy's rule remote_debug may refuse it"
)

NO_SESSION = 1
"""The exit code when something is missing; that of the session otherwise."""

Host = Annotated[int, typer.Option(min=1, help="Which host, as in algo-1 of its log streams.")]

Print = Annotated[bool, typer.Option("--print", help="Only print the command; start nothing.")]

Json = Annotated[
    bool, typer.Option("--json", help="Print the command and its target as JSON; start nothing.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tunnel:
    """A port of a container that is to be reached at a port of this machine."""

    port: int
    local_port: int

    @property
    def options(self) -> list[str]:
        """The options of ``aws ssm start-session`` that forward it."""
        parameters = {"portNumber": [str(self.port)], "localPortNumber": [str(self.local_port)]}
        return ["--document-name", FORWARDS, "--parameters", json.dumps(parameters)]


def not_running(job: JobView) -> str | None:
    """Say why the job has no container; None if it has one, or nearly."""
    if job.is_final:
        return f"{job.name} has ended: it is {job.state}"
    if job.is_waiting:
        return f"{job.name} does not run yet. {place_line(job)}"
    return None


def obstacles(description: Description, host: int) -> Iterator[str]:
    """Yield everything that prevents a session with that host, counted from 1."""
    if description.get("TrainingJobStatus") != "InProgress":
        yield f"the training job has ended: it is {printable(description.get('TrainingJobStatus'))}"
    elif description.get("SecondaryStatus") != "Training":
        status = printable(description.get("SecondaryStatus"))
        yield f"its container is not there yet: it is {status}, try again"
    if not (description.get("RemoteDebugConfig") or {}).get("EnableRemoteDebug"):
        yield HOW_TO_ENABLE
    if description.get("EnableNetworkIsolation"):
        yield "it runs with EnableNetworkIsolation, which keeps Systems Manager out as well"
    count = hosts(description)
    if host > count:
        yield f"it has no host {host}: there are {count}, counted from 1"


def hosts(description: Description) -> int:
    resources = description.get("ResourceConfig") or {}
    groups = resources.get("InstanceGroups") or [resources]
    return sum(int(group.get("InstanceCount") or 0) for group in groups) or 1


def target(training_job_name: str, host: int) -> str:
    return f"sagemaker-training-job:{training_job_name}_algo-{host}"


def command(training_job_name: str, host: int, region: str | None, tunnel: Tunnel | None = None) -> list[str]:
    """Return the command of a session; without a region the AWS CLI takes its own."""
    line = [AWS_CLI, "ssm", "start-session", "--target", target(training_job_name, host)]
    line += [] if tunnel is None else tunnel.options
    return line if region is None else [*line, "--region", region]


def after_refusal(
    training_job_name: str, host: int, description: Description, tunnel: Tunnel | None = None
) -> Iterator[str]:
    """Explain what the codes of ``aws ssm start-session`` mean here."""
    role = printable(description.get("RoleArn"))
    yield "AccessDeniedException: you need ssm:StartSession, which may be bound to"
    yield f"  ssm:resourceTag/aws:ssmmessages:target-id = {target(training_job_name, host)}"
    if tunnel is not None:
        yield f"  and to forward a port also on arn:aws:ssm:REGION::document/{FORWARDS}"
    yield "TargetNotConnected: the agent in the container has not reached Systems Manager:"
    yield f"  {role} needs ssmmessages:CreateControlChannel,"
    yield "  ssmmessages:CreateDataChannel, ssmmessages:OpenControlChannel, ssmmessages:OpenDataChannel"
    if description.get("VpcConfig"):
        yield "  the job's subnets need a way to ssmmessages: a VPC endpoint, or the internet"
    yield "  its own log: group /aws/sagemaker/TrainingJobs, stream"
    yield f"  {training_job_name}/algo-{host}-<time>/ssm"


def open_session(job: str, *, host: int, tunnel: Tunnel | None, print_: bool, as_json: bool) -> None:
    """Start a session with a container of a job's live attempt, or print its command.

    Args:
        job: The job's name.
        host: Which of its hosts, counted from 1.
        tunnel: The port to forward; None: a shell.
        print_: Only print the command.
        as_json: Only print the command and its target, as JSON.

    Raises:
        typer.Exit: 1 when something is missing, else the exit code of the session.
    """
    view = job_view(connect().job(job, estimate=False))
    if why := not_running(view):
        refuse(view, [why])
    session = aws_session()
    description = described(session, view)
    if reasons := list(obstacles(description, host)):
        refuse(view, reasons)
    line = command(view.training_job_name, host, session.region_name, tunnel)
    if as_json:
        print_json({"command": line, "target": target(view.training_job_name, host)})
    elif print_:
        print(shlex.join(line))
    else:
        _run(line, view, host, description, tunnel)


def described(session: boto3.Session, job: JobView) -> Description:
    """Ask SageMaker for the training job of the live attempt, or the last; ends the command if it fails."""
    try:
        client = session.client("sagemaker")
        return client.describe_training_job(TrainingJobName=job.training_job_name)
    except ClientError as error:
        code, message = (printable(error.response["Error"].get(key)) for key in ("Code", "Message"))
        refuse(job, [f"SageMaker does not describe {job.training_job_name}: {code}: {message}"])
    except (BotoCoreError, ValueError) as error:  # ValueError: AWS_ENDPOINT_URL is no URL
        refuse(job, [f"SageMaker cannot be asked: {printable(error)}"])


def _run(line: list[str], job: JobView, host: int, description: Description, tunnel: Tunnel | None) -> None:
    if missing := [tool for tool in (AWS_CLI, PLUGIN) if shutil.which(tool) is None]:
        refuse(job, [f"{tool} is not installed, see {INSTALL[tool]}" for tool in missing])
    if tunnel is not None:
        if reason := _why_taken(tunnel.local_port):
            taken = f"port {tunnel.local_port} of this machine cannot be opened: {reason}"
            refuse(job, [f"{taken}; name another: NUMBER:{tunnel.port}"])
        local = f"http://localhost:{tunnel.local_port}"
        say(f"{local} is port {tunnel.port} of {job.training_job_name}, host {host}. Ctrl-C ends it.")
    code = _shell(line) if tunnel is None else _forwarded(line)
    if code:
        say("\n".join(after_refusal(job.training_job_name, host, description, tunnel)))
    raise typer.Exit(code)


def _why_taken(port: int) -> str:
    """Return why a port of this machine cannot be listened at; empty if it can.

    The plugin says nothing about a port that is taken, and waits until the session's idle timeout
    (aws/session-manager-plugin, issue 141).
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            return error.strerror or str(error)
    return ""


def _shell(line: list[str]) -> int:
    """Run a session with a shell; Ctrl-C is for the program in the container."""
    with _hearing(lambda _: None):
        return subprocess.run(line, check=False).returncode  # noqa: S603  our own words, no shell


def _forwarded(line: list[str]) -> int:
    """Forward a port until it is interrupted, which is no failure; what it started ends with it.

    The AWS CLI may hang at Ctrl-C, or end and leave its plugin at the port (aws/aws-cli, issue 5149): both
    have a process group of their own, which a second Ctrl-C kills, and which is ended with the AWS CLI.
    """
    interrupts, groups = list[int](), list[int]()

    def end(_: int) -> None:
        interrupts.append(1)
        for group in groups:
            _signal_group(group, signal.SIGINT if len(interrupts) == 1 else signal.SIGKILL)

    with (
        _hearing(end, signal.SIGTERM, signal.SIGHUP),
        subprocess.Popen(line, stdin=subprocess.DEVNULL, process_group=0) as session,  # noqa: S603  the same
    ):
        groups.append(session.pid)
        if interrupts:  # while it was being started
            _signal_group(session.pid, signal.SIGINT)
        code = session.wait()
    _signal_group(session.pid, signal.SIGTERM)
    return 0 if interrupts else code


def _signal_group(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, number)


@contextmanager
def _hearing(act: Callable[[int], object], *others: signal.Signals) -> Iterator[None]:
    """Have Ctrl-C, and these signals, only call ``act``; by a handler, as a child would inherit "ignored"."""
    before = {
        number: signal.signal(number, lambda number, _: act(number)) for number in (signal.SIGINT, *others)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def refuse(job: JobView, reasons: list[str], *, what: str = "session with") -> NoReturn:
    """End the command, saying what there is not (``session with``) and why."""
    say("\n".join(f"trainmaster: no {what} {job.name}: {why}." for why in reasons))
    raise typer.Exit(NO_SESSION)
