"""Names of the botocore events that our handlers answer.

It is read before a program has boto3: no imports.
"""

from typing import Any
from weakref import WeakSet

TUNING_OPERATIONS = (
    "CreateHyperParameterTuningJob",
    "DescribeHyperParameterTuningJob",
    "ListTrainingJobsForHyperParameterTuningJob",
    "StopHyperParameterTuningJob",
    "ListHyperParameterTuningJobs",
)
QUEUED_EVENTS = (
    "before-call.sagemaker.CreateTrainingJob",
    "before-call.sagemaker.DescribeTrainingJob",
    "before-call.sagemaker.ListTrainingJobs",
    "before-call.sagemaker.StopTrainingJob",
    "before-call.sagemaker.UpdateTrainingJob",
    "before-call.sagemaker.ListTags",
    "before-call.sagemaker.AddTags",
    "before-call.sagemaker.DeleteTags",
    *(f"before-call.sagemaker.{operation}" for operation in TUNING_OPERATIONS),
)
HOOKED_EVENTS = (
    *QUEUED_EVENTS,
    "before-call.sagemaker.CreatePipeline",
    "before-call.sagemaker.UpdatePipeline",
    "before-call.batch.SubmitServiceJob",
    "before-call.cloudwatch-logs.DescribeLogStreams",
    "before-call.cloudwatch-logs.GetLogEvents",
    "provide-client-params.cloudwatch.GetMetricStatistics",
    "after-call.cloudwatch.GetMetricStatistics",
    "provide-client-params.cloudwatch.GetMetricData",
    "after-call.cloudwatch.GetMetricData",
    "before-call.sts.GetCallerIdentity",
)
"""Every event that any module of ours registers a handler for."""
HOOKED_SERVICES = frozenset({"sagemaker", "batch", "logs", "cloudwatch", "sts"})
"""The services of these events, as ``client()`` names them."""

KEY = "trainmaster_key"
"""Key of a call's context: the idempotency key that the caller repeats the call with, or "" if it has none.
A call without this entry was made by this process, which makes a key of its own."""

SEEN = "trainmaster_seen"
"""Key of a call's context: a hook saw the call, whatever it decided. A CreateTrainingJob without it has no
hook."""

PLAIN_CLIENTS: "WeakSet[Any]" = WeakSet()
"""Clients that the hooks call AWS with: a hook on one of them would call itself."""


def handler_id(event: str) -> str:
    """Return a unique id for our handler of an event: botocore keeps one handler per id for all events."""
    phase, _, rest = event.partition(".")
    operation = rest.rpartition(".")[2]
    return f"trainmaster-{operation}" if phase == "before-call" else f"trainmaster-{phase}-{operation}"
