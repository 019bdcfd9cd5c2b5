"""The stack as a user gets it: ``sam build``, ``sam deploy``, and what CloudFormation then says of it."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demos.deploy_check.ministack import ACCOUNT, REGION, MiniStack

if TYPE_CHECKING:
    from boto3 import Session

Document = dict[str, Any]

ROOT = Path(__file__).parents[2]
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


class SamError(Exception):
    """``sam`` ended with an error, or not at all; the message has what it printed."""


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
        self._resources = {resource["logical_id"]: resource["physical_id"] for resource in self.resources()}
        self._count_with_numbers()

    def status(self) -> str:
        status: str = self._described()["StackStatus"]
        return status

    def outputs(self) -> dict[str, str]:
        return {output["OutputKey"]: output["OutputValue"] for output in self._described()["Outputs"]}

    def resources(self) -> list[Document]:
        """Return the stack's resources as CloudFormation lists them."""
        pages = self.session.client("cloudformation").get_paginator("list_stack_resources")
        return [
            {
                "logical_id": resource["LogicalResourceId"],
                "physical_id": resource["PhysicalResourceId"],
                "type": resource["ResourceType"],
                "status": resource["ResourceStatus"],
            }
            for page in pages.paginate(StackName=STACK)
            for resource in page["StackResourceSummaries"]
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

    def _described(self) -> Document:
        stacks = self.session.client("cloudformation").describe_stacks(StackName=STACK)["Stacks"]
        return dict(stacks[0])

    def _sam(self, command: str, *options: str) -> None:
        scripts = Path(sys.executable).parent
        environment = os.environ | self.ministack.environment() | {"LAYER_PYTHON": sys.executable}
        environment["PATH"] = f"{scripts}{os.pathsep}{environment['PATH']}"
        config = ["--config-file", str(ROOT / "samconfig.toml")]
        try:
            done = subprocess.run(
                [scripts / "sam", command, *config, *options],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=SAM_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            printed = (error.stdout or b"") + (error.stderr or b"")
            raise SamError(f"{error}:\n{printed.decode(errors='replace')}") from error
        if done.returncode:
            raise SamError(f"sam {command} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
