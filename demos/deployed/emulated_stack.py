"""The stack as a user gets it, on an emulator: ``sam build``, ``sam deploy``, and rights for the emulator."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demos.deployed.ministack import ACCOUNT, REGION, MiniStack
from demos.deployed.sam import DeployedStack, run_sam
from demos.stage.evidence import Document
from demos.stage.job_requests import GPU_IMAGE, Job
from demos.stage.processes import ROOT

if TYPE_CHECKING:
    from boto3 import Session

STACK = "trainmaster"
ADMIN = "platform-admin"
BUCKET = "training-data"
ROLE_ARN = f"arn:aws:iam::{ACCOUNT}:role/training"
PARAMETERS: Mapping[str, str] = {
    "VpcEndpointIds": "vpce-0123456789abcdef0",
    "CallerPrincipalArns": f"arn:aws:iam::{ACCOUNT}:user/{ADMIN}",
    "CallerAccounts": ACCOUNT,
    "AdminPrincipalArns": f"arn:aws:iam::{ACCOUNT}:user/{ADMIN}",
    "TrainingRoleArns": ROLE_ARN,
    "CheckpointBuckets": f"arn:aws:s3:::{BUCKET}",
}
"""Parameters that have no default, and the bucket."""
SAM_SECONDS = 900.0
_RINGERS = ("Api", "OnTrainingJobEvent", "OnIdleAlarm", "Reconcile")
MORE_RIGHTS: Sequence[Document] = (
    {
        "roles": [f"{name}FunctionRole" for name in _RINGERS],
        "action": "sqs:SendMessageBatch",
        "why": "AWS asks for sqs:SendMessage, which they have; it has no action of the batch's name",
    },
    {
        "roles": ["ScheduleFunctionRole"],
        "action": "cloudwatch:DeleteAlarms",
        "why": "AWS reads the ARNs from AlarmNames; MiniStack knows only AlarmName and asks for *",
    },
)
"""Rights that MiniStack asks for and AWS does not. Source: SQS developer guide, "Amazon SQS API
permissions"; Service Authorization Reference, "Actions, resources, and condition keys for Amazon
CloudWatch"."""


INSTANCE_TYPE = "ml.g5.xlarge"
"""Instance type of the jobs: it has a GPU, so that each gets an alarm."""
CAPACITY = 2
POLICY: Document = {
    "version": 1,
    "pools": [{"name": "gpu", "capacity": {INSTANCE_TYPE: CAPACITY}}],
    "idle": {"gpu_below_percent": 1, "for": "15m", "period": "5m", "then": "stop", "warn_first": "10m"},
}
PLACE = {"role_arn": ROLE_ARN, "bucket": BUCKET}


def checked_job(name: str, priority: int, command: Sequence[str]) -> Document:
    """Return the request of a job on the emulator."""
    job = Job(name=name, command=command, image=GPU_IMAGE, instance_type=INSTANCE_TYPE, priority=priority)
    return job.request(PLACE)


@dataclass(slots=True)
class Deployment:
    """The stack on one MiniStack: ``build`` or ``take`` first, then ``deploy``, as often as wanted."""

    ministack: MiniStack
    session: "Session"
    folder: Path
    """Folder for the built artifacts."""
    _template: Path | None = None
    _resources: dict[str, str] = field(default_factory=dict)

    def build(self, checkout: Path = ROOT) -> None:
        """Build the stack of this checkout, to be deployed from now on. Raises SamError."""
        folder = self.folder / checkout.name
        self._sam("build", "--build-dir", str(folder), "--template", str(checkout / "template.yaml"))
        self.take(folder / "template.yaml")

    def take(self, template: Path) -> None:
        """Take this template, whose code is built, to be deployed from now on."""
        self._template = template

    def deploy(self, **changed: str) -> None:
        """Deploy with the parameters and what is changed of them. Raises SamError."""
        assert self._template is not None, "build or take comes first"
        parameters = [f"{name}={value}" for name, value in {**PARAMETERS, **changed}.items()]
        options = ["--no-confirm-changeset", "--template", str(self._template), "--region", REGION]
        self._sam("deploy", *options, "--parameter-overrides", *parameters)
        self._resources = self._stack.physical_ids()
        self._count_with_numbers()

    def status(self) -> str:
        return str((self._stack.described() or {})["StackStatus"])

    def outputs(self) -> dict[str, str]:
        return self._stack.outputs()

    def resources(self) -> list[Document]:
        """Return the logical id, type and status of each resource of the stack."""
        return [
            {
                "logical_id": resource["LogicalResourceId"],
                "type": resource["ResourceType"],
                "status": resource["ResourceStatus"],
            }
            for resource in self._stack.resources()
        ]

    def name_of(self, logical_id: str) -> str:
        """Return the name that a resource really has."""
        return self._resources[logical_id]

    def add_rights(self) -> list[Document]:
        """Give roles what MiniStack asks for and AWS does not, as policies beside those of the template.

        Returns them. Everything else is decided by the template's own policies.
        """
        iam = self.session.client("iam")
        added = [{"role": role, **right} for right in MORE_RIGHTS for role in right["roles"]]
        for number, right in enumerate(added):
            statement = {"Effect": "Allow", "Action": right["action"], "Resource": "*"}
            iam.put_role_policy(
                RoleName=self.name_of(right["role"]),
                PolicyName=f"deploy-check-{number}",
                PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [statement]}),
            )
        return [{key: right[key] for key in ("role", "action", "why")} for right in added]

    def _count_with_numbers(self) -> None:
        """Store the polling limit as a number: after an update MiniStack keeps the parameter's text.

        Its poller compares that with a number and fails for ever; AWS takes the parameter as a number.
        """
        functions = self.session.client("lambda")
        for mapping in functions.list_event_source_mappings()["EventSourceMappings"]:
            most = mapping.get("ScalingConfig", {}).get("MaximumConcurrency")
            if most is not None:
                scaling: Any = {"MaximumConcurrency": int(most)}
                functions.update_event_source_mapping(UUID=mapping["UUID"], ScalingConfig=scaling)

    @property
    def _stack(self) -> DeployedStack:
        return DeployedStack(session=self.session, name=STACK)

    def _sam(self, command: str, *options: str) -> None:
        run_sam(command, *options, seconds=SAM_SECONDS, env=self.ministack.environment())
