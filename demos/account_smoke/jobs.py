"""The four jobs on the smallest type: one is preempted by an urgent one and resumes from its checkpoint."""

from dataclasses import dataclass
from typing import Any

from trainmaster_client.account_check.trial_requests import INSTANCE_TYPE, TAG

Document = dict[str, Any]

CAPACITY = 2
POLICY: Document = {"version": 1, "pools": [{"name": "smoke", "capacity": {INSTANCE_TYPE: CAPACITY}}]}
_RUN_SECONDS = 1800
# Counts to $N, a step a second, on top of what the checkpoint says; SIGTERM keeps the count.
_COUNTS = (
    "c=/opt/ml/checkpoints;mkdir -p $c;n=$(cat $c/n 2>/dev/null||echo 0);echo from $n;"
    "trap 'echo $n>$c/n;exit 143' TERM;while [ $n -lt $N ];do sleep 1;n=$((n+1));echo $n>$c/n;done"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SmokeJob:
    label: str
    priority: int
    steps: int

    def name(self, run: str) -> str:
        return f"{TAG}-{run}-{self.label}"

    def request(self, run: str, *, role: str, bucket: str, image: str) -> Document:
        place = f"s3://{bucket}/{TAG}/{run}"
        return {
            "TrainingJobName": self.name(run),
            "RoleArn": role,
            "AlgorithmSpecification": {
                "TrainingImage": image,
                "TrainingInputMode": "File",
                "ContainerEntrypoint": ["sh", "-c", _COUNTS],
            },
            "Environment": {"N": str(self.steps)},
            "OutputDataConfig": {"S3OutputPath": f"{place}/output"},
            "CheckpointConfig": {"S3Uri": f"{place}/checkpoints/{self.label}"},
            "ResourceConfig": {"InstanceType": INSTANCE_TYPE, "InstanceCount": 1, "VolumeSizeInGB": 10},
            "StoppingCondition": {"MaxRuntimeInSeconds": _RUN_SECONDS},
            "Tags": [{"Key": "priority", "Value": str(self.priority)}, {"Key": TAG, "Value": run}],
        }


JOB1 = SmokeJob(label="job1", priority=1, steps=90)
JOB2 = SmokeJob(label="job2", priority=2, steps=90)
JOB3 = SmokeJob(label="job3", priority=1, steps=15)
JOB4 = SmokeJob(label="job4", priority=3, steps=15)
JOBS = (JOB1, JOB2, JOB3, JOB4)
KEYED = SmokeJob(label="keyed", priority=1, steps=1)
"""Job whose volume has a customer's key, if one was lent."""
