"""What a run has left in the account, or one that was killed: found by name and tag, and removed."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from trainmaster_client.account_check.service_calls import MissingRightError, RefusedCallError, ServiceCalls
from trainmaster_client.account_check.trial_requests import PREFIX, TAG

_LONGEST = timedelta(hours=3)
"""A job of the check is over by then, whoever was killed."""
_PAGE = 100
_KEYS = 1000
"""The most that S3 deletes at once."""


@dataclass(slots=True, kw_only=True)
class Leftovers:
    """Each kind by itself: where one may not be removed, the others are."""

    calls: ServiceCalls
    bucket: str | None
    removed: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    """With the reason."""

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
        """Training jobs stay listed when they have ended; what runs is stopped, what is kept warm let go."""
        for one in self._listed():
            name, warm = one["TrainingJobName"], one.get("WarmPoolStatus", {}).get("Status")
            runs = one["TrainingJobStatus"] == "InProgress"
            if not (runs or warm == "Available") or not self._is_ours(one["TrainingJobArn"]):
                continue
            if runs:
                said = self.calls.patient("sagemaker", "StopTrainingJob", TrainingJobName=name)
            else:
                kept = {"KeepAlivePeriodInSeconds": 0}
                said = self.calls.patient(
                    "sagemaker", "UpdateTrainingJob", TrainingJobName=name, ResourceConfig=kept
                )
            text = f"training job {name}"
            if said.code is None:
                self.removed.append(text)
            elif said.code != "ValidationException":  # it has ended by itself meanwhile
                self.kept.append(f"{text}: {said.code}")

    def _listed(self) -> Iterator[dict[str, Any]]:
        asked = {
            "NameContains": PREFIX,
            "CreationTimeAfter": datetime.now(UTC) - _LONGEST,
            "MaxResults": _PAGE,
        }
        while True:
            page = self.calls.get("sagemaker", "ListTrainingJobs", **asked)
            yield from (
                one for one in page["TrainingJobSummaries"] if one["TrainingJobName"].startswith(PREFIX)
            )
            if "NextToken" not in page:
                return
            asked["NextToken"] = page["NextToken"]

    def _is_ours(self, arn: str) -> bool:
        tags = self.calls.get("sagemaker", "ListTags", ResourceArn=arn)["Tags"]
        return any(one["Key"] == TAG for one in tags)

    def _rules(self) -> None:
        for one in self.calls.get("events", "ListRules", NamePrefix=PREFIX)["Rules"]:
            name = one["Name"]
            targets = self.calls.get("events", "ListTargetsByRule", Rule=name)["Targets"]
            if targets:
                self.calls.get("events", "RemoveTargets", Rule=name, Ids=[each["Id"] for each in targets])
            self.calls.get("events", "DeleteRule", Name=name)
            self.removed.append(f"rule {name}")

    def _queues(self) -> None:
        for url in self.calls.get("sqs", "ListQueues", QueueNamePrefix=PREFIX).get("QueueUrls", ()):
            self.calls.get("sqs", "DeleteQueue", QueueUrl=url)
            self.removed.append(f"queue {url.rpartition('/')[2]}")

    def _alarms(self) -> None:
        found = self.calls.get("cloudwatch", "DescribeAlarms", AlarmNamePrefix=PREFIX)
        names = [one["AlarmName"] for one in found.get("MetricAlarms", ())]
        if names:
            self.calls.get("cloudwatch", "DeleteAlarms", AlarmNames=names)
            self.removed += [f"alarm {name}" for name in names]

    def _objects(self) -> None:
        if self.bucket is None:
            return
        asked = {"Bucket": self.bucket, "Prefix": f"{TAG}/", "MaxKeys": _KEYS}
        while found := self.calls.get("s3", "ListObjectsV2", **asked).get("Contents"):
            keys = [{"Key": one["Key"]} for one in found]
            answer = self.calls.get("s3", "DeleteObjects", Bucket=self.bucket, Delete={"Objects": keys})
            if errors := answer.get("Errors"):
                self.kept.append(f"objects: {errors[0].get('Code')}: {errors[0].get('Key')}")
                return
            self.removed.append(f"{len(keys)} objects of s3://{self.bucket}/{TAG}/")
