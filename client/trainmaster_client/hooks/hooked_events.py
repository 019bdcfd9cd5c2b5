"""The events of botocore that our handlers answer. Imports nothing: it is read before a program has boto3."""

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
"""Of these events, as clients are called."""

KEY = "trainmaster_key"
"""In a call's context: the idempotency key that its caller repeats it with; "" where the caller has none.
Without this entry the call is one of this process, which makes a key of its own."""

SEEN = "trainmaster_seen"
"""In a call's context: a hook saw it, whatever it decided. A CreateTrainingJob without it leaves unhooked."""

PLAIN_CLIENTS: "WeakSet[Any]" = WeakSet()
"""Those that the hooks ask AWS with: a hook on one of them would ask itself."""


def handler_id(event: str) -> str:
    """Unlike any other of ours: botocore keeps one handler for an id, whatever its event."""
    phase, _, rest = event.partition(".")
    operation = rest.rpartition(".")[2]
    return f"trainmaster-{operation}" if phase == "before-call" else f"trainmaster-{phase}-{operation}"
