"""``trainmaster ssh``: a shell in the container of a running attempt, and what stands in its way.

Source: SageMaker developer guide, Access a training container through AWS Systems Manager for remote
debugging.
"""

import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, NoReturn

import boto3
import typer
from botocore.exceptions import BotoCoreError, ClientError

from trainmaster_client.cli.connection import aws_session, connect
from trainmaster_client.cli.jobs import JobName
from trainmaster_client.cli.screen import print_json, say
from trainmaster_client.http.answers import printable
from trainmaster_client.jobs.job_views import JobView, job_view
from trainmaster_client.jobs.progress import place_line

Description = Mapping[str, Any]
"""An answer of DescribeTrainingJob."""

AWS_CLI, PLUGIN = "aws", "session-manager-plugin"
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


def command(training_job_name: str, host: int, region: str | None) -> list[str]:
    """Return the command of a session; without a region the AWS CLI takes its own."""
    line = [AWS_CLI, "ssm", "start-session", "--target", target(training_job_name, host)]
    return line if region is None else [*line, "--region", region]


def after_refusal(training_job_name: str, host: int, description: Description) -> Iterator[str]:
    """Explain what the codes of ``aws ssm start-session`` mean here."""
    role = printable(description.get("RoleArn"))
    yield "AccessDeniedException: you need ssm:StartSession, which may be bound to"
    yield f"  ssm:resourceTag/aws:ssmmessages:target-id = {target(training_job_name, host)}"
    yield "TargetNotConnected: the agent in the container has not reached Systems Manager:"
    yield f"  {role} needs ssmmessages:CreateControlChannel,"
    yield "  ssmmessages:CreateDataChannel, ssmmessages:OpenControlChannel, ssmmessages:OpenDataChannel"
    if description.get("VpcConfig"):
        yield "  the job's subnets need a way to ssmmessages: a VPC endpoint, or the internet"
    yield "  its own log: group /aws/sagemaker/TrainingJobs, stream"
    yield f"  {training_job_name}/algo-{host}-<time>/ssm"


def ssh(job: JobName, *, host: Host = 1, print_: Print = False, as_json: Json = False) -> None:
    """Open a shell in a running job's container. Needs the AWS CLI with its Session Manager plugin."""
    view = job_view(connect().job(job, estimate=False))
    if why := not_running(view):
        _refuse(view, [why])
    session = aws_session()
    description = _described(session, view)
    if reasons := list(obstacles(description, host)):
        _refuse(view, reasons)
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
    """Leave Ctrl-C to the program in the container, by a handler: a child would inherit "ignored"."""
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _refuse(job: JobView, reasons: list[str]) -> NoReturn:
    say("\n".join(f"trainmaster: no session with {job.name}: {why}." for why in reasons))
    raise typer.Exit(NO_SESSION)
