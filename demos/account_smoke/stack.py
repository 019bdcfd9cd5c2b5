"""The stack of the smoke test: made with sam, and deleted with what CloudFormation would keep."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from demos.account_smoke.lent import Lent

ROOT = Path(__file__).parents[2]
TAG = "trainmaster-check"
_SAM_SECONDS = 1800.0
_LOOK_SECONDS = 10.0
_KEY_DAYS = 7
"""The least that KMS waits before it deletes a key."""
Document = dict[str, Any]


class SmokeStackError(Exception):
    """The message says what to do."""


@dataclass(slots=True, kw_only=True)
class SmokeStack:
    lent: Lent
    say: Callable[[str], None]
    pause: Callable[[float], None] = time.sleep

    def parameters(self) -> Mapping[str, str]:
        lent = self.lent
        return {
            "VpcEndpointIds": lent.vpc_endpoint,
            "CallerPrincipalArns": lent.principal,
            "CallerAccounts": lent.account,
            "AdminPrincipalArns": lent.principal,
            "TrainingRoleArns": lent.role,
            "CheckpointBuckets": f"arn:{lent.role.split(':')[1]}:s3:::{lent.bucket}",
            "ApiUrlParameterName": f"/{lent.stack}/api-url",
            "LogRetentionDays": "1",
            "RetentionDays": "1",
            **({"TrainingKmsKeyArns": lent.key} if lent.key else {}),
        }

    def deploy(self) -> None:
        """Raises SmokeStackError."""
        built = ROOT / ".aws-sam" / "account-smoke"
        self._sam("build", "--build-dir", str(built), "--template", str(ROOT / "template.yaml"))
        given = [f"{name}={value}" for name, value in self.parameters().items()]
        options = ["--stack-name", self.lent.stack, "--no-confirm-changeset", "--tags", f"{TAG}=smoke"]
        template = ["--template", str(built / "template.yaml"), "--region", self.lent.region]
        self._sam("deploy", *options, *template, "--parameter-overrides", *given)

    def described(self) -> Document | None:
        """None: there is no such stack."""
        try:
            found = self._cloudformation.describe_stacks(StackName=self.lent.stack)["Stacks"]
        except ClientError as error:
            if error.response["Error"]["Code"] == "ValidationError":
                return None
            raise
        return dict(found[0])

    def outputs(self) -> dict[str, str]:
        found = self.described() or {}
        return {one["OutputKey"]: one["OutputValue"] for one in found.get("Outputs", ())}

    def resources(self) -> dict[str, str]:
        """Physical ids by logical ones."""
        pages = self._cloudformation.get_paginator("list_stack_resources").paginate(StackName=self.lent.stack)
        return {
            one["LogicalResourceId"]: one.get("PhysicalResourceId", "")
            for page in pages
            for one in page["StackResourceSummaries"]
        }

    def delete(self) -> list[str]:
        """The stack, its table and its key; what is not there is none. Returns what was deleted.

        Raises SmokeStackError for a stack of this name that this did not make.
        """
        found = self.described()
        kept: dict[str, str] = {}
        deleted = []
        if found is not None:
            if {"Key": TAG, "Value": "smoke"} not in found.get("Tags", ()):
                raise SmokeStackError(
                    f"the stack {self.lent.stack} was not made by account-smoke; rename or delete it yourself"
                )
            kept = {name: one for name, one in self.resources().items() if name in {"Table", "Key"} and one}
            self.say(f"deleting the stack {self.lent.stack} ...")
            self._cloudformation.delete_stack(StackName=self.lent.stack)
            self._await_deletion()
            deleted.append(f"stack {self.lent.stack}")
        for arn in self._kept_of_earlier_runs():
            kept.setdefault("Table" if ":table/" in arn else "Key", arn.rpartition("/")[2])
        return deleted + self._delete_kept(kept)

    def _delete_kept(self, kept: Mapping[str, str]) -> list[str]:
        """Retained on purpose by the template: here it is a few rows of a test."""
        deleted = []
        if table := kept.get("Table"):
            dynamodb = self.lent.session.client("dynamodb")
            with suppress(dynamodb.exceptions.ResourceNotFoundException):
                dynamodb.update_table(TableName=table, DeletionProtectionEnabled=False)
                dynamodb.get_waiter("table_exists").wait(TableName=table)
                dynamodb.delete_table(TableName=table)
                deleted.append(f"table {table}")
        if key := kept.get("Key"):
            kms = self.lent.session.client("kms")
            with suppress(kms.exceptions.KMSInvalidStateException, kms.exceptions.NotFoundException):
                kms.schedule_key_deletion(KeyId=key, PendingWindowInDays=_KEY_DAYS)
                deleted.append(f"key {key}, in {_KEY_DAYS} days")
        return deleted

    def _kept_of_earlier_runs(self) -> list[str]:
        """ARNs of what a killed run left when its stack was gone."""
        client = self.lent.session.client("resourcegroupstaggingapi")
        try:
            found = client.get_resources(
                TagFilters=[{"Key": TAG, "Values": ["smoke"]}],
                ResourceTypeFilters=["dynamodb:table", "kms:key"],
            )
        except ClientError as error:
            self.say(f"leftovers of an earlier run cannot be looked for: {error.response['Error']['Code']}")
            return []
        return [one["ResourceARN"] for one in found["ResourceTagMappingList"]]

    def _await_deletion(self) -> None:
        until = time.monotonic() + _SAM_SECONDS
        while time.monotonic() < until:
            found = self.described()
            if found is None:
                return
            if found["StackStatus"] == "DELETE_FAILED":
                raise SmokeStackError(f"{self.lent.stack}: {found.get('StackStatusReason', 'DELETE_FAILED')}")
            self.pause(_LOOK_SECONDS)
        raise SmokeStackError(f"{self.lent.stack} is still being deleted; run make account-smoke again later")

    @property
    def _cloudformation(self) -> Any:  # noqa: ANN401  boto3 makes its clients at run time
        return self.lent.session.client("cloudformation")

    def _sam(self, command: str, *options: str) -> None:
        scripts = Path(sys.executable).parent
        environment = os.environ | {"LAYER_PYTHON": sys.executable}
        environment["PATH"] = f"{scripts}{os.pathsep}{environment['PATH']}"
        config = ["--config-file", str(ROOT / "samconfig.toml")]
        self.say(f"sam {command} ...")
        try:
            done = subprocess.run(
                [scripts / "sam", command, *config, *options],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_SAM_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise SmokeStackError(f"sam {command} took more than {_SAM_SECONDS:.0f} s") from error
        if done.returncode:
            raise SmokeStackError(
                f"sam {command} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
            )
