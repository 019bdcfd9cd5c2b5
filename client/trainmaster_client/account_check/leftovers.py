"""Leftovers of this or a killed run in the account: found by name and tag, and removed."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from trainmaster_client.account_check.service_calls import MissingRightError, RefusedCallError, ServiceCalls
from trainmaster_client.account_check.trial_requests import PREFIX, TAG

_LONGEST = timedelta(hours=3)
"""Age after which every job of the check has ended by itself, even if the check was killed."""
_PAGE = 100
_KEYS = 1000
"""Number of keys that S3 deletes at most per call."""


@dataclass(slots=True, kw_only=True)
class Leftovers:
    """Removes each kind of leftover by itself: if one may not be removed, the others still are."""

    calls: ServiceCalls
    bucket: str | None
    removed: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    """Leftovers that could not be removed, each with the reason."""

    def remove(self) -> None:
        for kind in (self._jobs, self._rules, self._queues, self._alarms, self._objects):
            self._guarded(kind)

    def _guarded(self, remove: Callable[[], None]) -> None:
        try:
            remove()
        except MissingRightError as error:
            self.kept.append(f"{remove.__name__.strip('_')}: {error.action} is not allowed")
        except RefusedCallError as error:
            self.kept.append(f"{remove.__name__.strip('_')}: {error}")

    def _jobs(self) -> None:
        """Stop running jobs and release warm pools; ended training jobs stay listed for ever."""
        for summary in self._listed():
            name, warm = summary["TrainingJobName"], summary.get("WarmPoolStatus", {}).get("Status")
            runs = summary["TrainingJobStatus"] == "InProgress"
            if not (runs or warm == "Available") or not self._is_ours(summary["TrainingJobArn"]):
                continue
            if runs:
                answer = self.calls.patient("sagemaker", "StopTrainingJob", TrainingJobName=name)
            else:
                kept = {"KeepAlivePeriodInSeconds": 0}
                answer = self.calls.patient(
                    "sagemaker", "UpdateTrainingJob", TrainingJobName=name, ResourceConfig=kept
                )
            text = f"training job {name}"
            if answer.code is None:
                self.removed.append(text)
            elif answer.code != "ValidationException":  # it has ended by itself meanwhile
                self.kept.append(f"{text}: {answer.code}")

    def _listed(self) -> Iterator[dict[str, Any]]:
        request = {
            "NameContains": PREFIX,
            "CreationTimeAfter": datetime.now(UTC) - _LONGEST,
            "MaxResults": _PAGE,
        }
        while True:
            page = self.calls.get("sagemaker", "ListTrainingJobs", **request)
            yield from (
                summary
                for summary in page["TrainingJobSummaries"]
                if summary["TrainingJobName"].startswith(PREFIX)
            )
            if "NextToken" not in page:
                return
            request["NextToken"] = page["NextToken"]

    def _is_ours(self, arn: str) -> bool:
        tags = self.calls.get("sagemaker", "ListTags", ResourceArn=arn)["Tags"]
        return any(tag["Key"] == TAG for tag in tags)

    def _rules(self) -> None:
        for rule in self.calls.get("events", "ListRules", NamePrefix=PREFIX)["Rules"]:
            name = rule["Name"]
            targets = self.calls.get("events", "ListTargetsByRule", Rule=name)["Targets"]
            if targets:
                self.calls.get("events", "RemoveTargets", Rule=name, Ids=[target["Id"] for target in targets])
            self.calls.get("events", "DeleteRule", Name=name)
            self.removed.append(f"rule {name}")

    def _queues(self) -> None:
        for url in self.calls.get("sqs", "ListQueues", QueueNamePrefix=PREFIX).get("QueueUrls", ()):
            self.calls.get("sqs", "DeleteQueue", QueueUrl=url)
            self.removed.append(f"queue {url.rpartition('/')[2]}")

    def _alarms(self) -> None:
        described = self.calls.get("cloudwatch", "DescribeAlarms", AlarmNamePrefix=PREFIX)
        names = [alarm["AlarmName"] for alarm in described.get("MetricAlarms", ())]
        if names:
            self.calls.get("cloudwatch", "DeleteAlarms", AlarmNames=names)
            self.removed += [f"alarm {name}" for name in names]

    def _objects(self) -> None:
        if self.bucket is None:
            return
        request = {"Bucket": self.bucket, "Prefix": f"{TAG}/", "MaxKeys": _KEYS}
        while contents := self.calls.get("s3", "ListObjectsV2", **request).get("Contents"):
            keys = [{"Key": entry["Key"]} for entry in contents]
            answer = self.calls.get("s3", "DeleteObjects", Bucket=self.bucket, Delete={"Objects": keys})
            if errors := answer.get("Errors"):
                self.kept.append(f"objects: {errors[0].get('Code')}: {errors[0].get('Key')}")
                return
            self.removed.append(f"{len(keys)} objects of s3://{self.bucket}/{TAG}/")
