"""A shell in the container of a running attempt: what stands in its way, and the command for it.

Source: SageMaker developer guide, Access a training container through AWS Systems Manager for remote
debugging.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from trainmaster_client.http.printable import printable
from trainmaster_client.jobs.job_views import JobView
from trainmaster_client.jobs.progress import place_line

Description = Mapping[str, Any]
"""DescribeTrainingJob's answer."""

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


def not_running(job: JobView) -> str | None:
    """Why the job has no container; None: it has one, or nearly."""
    if job.is_final:
        return f"{job.name} has ended: it is {job.state}"
    if job.is_waiting:
        return f"{job.name} does not run yet. {place_line(job)}"
    return None


def obstacles(description: Description, host: int) -> Iterator[str]:
    """Everything that stands in the way of a session with that host, counted from 1."""
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
    """Without a region the AWS CLI takes its own."""
    line = [AWS_CLI, "ssm", "start-session", "--target", target(training_job_name, host)]
    return line if region is None else [*line, "--region", region]


def after_refusal(training_job_name: str, host: int, description: Description) -> Iterator[str]:
    """What the codes of ``aws ssm start-session`` mean here."""
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
