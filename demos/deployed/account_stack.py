"""The stack in an account: made with sam, and deleted with what CloudFormation would keep."""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from botocore.exceptions import ClientError
from trainmaster_client.account_check.trial_requests import TAG

from demos.deployed.lent import Lent
from demos.deployed.sam import DeployedStack, SamError, run_sam
from demos.stage.processes import ROOT

_OWN_TAG = {"Key": TAG, "Value": "smoke"}
_SAM_SECONDS = 1800.0
_LOOK_SECONDS = 10.0
_KEY_DAYS = 7
"""The least that KMS waits before it deletes a key."""


@dataclass(slots=True, kw_only=True)
class SmokeStack:
    lent: Lent
    say: Callable[[str], None]
    pause: Callable[[float], None] = time.sleep

    @property
    def deployed(self) -> DeployedStack:
        return DeployedStack(session=self.lent.session, name=self.lent.stack)

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
        """Raises SamError."""
        built = ROOT / ".aws-sam" / "account-smoke"
        self._sam("build", "--build-dir", str(built), "--template", str(ROOT / "template.yaml"))
        given = [f"{name}={value}" for name, value in self.parameters().items()]
        options = ["--stack-name", self.lent.stack, "--no-confirm-changeset", "--tags", f"{TAG}=smoke"]
        template = ["--template", str(built / "template.yaml"), "--region", self.lent.region]
        self._sam("deploy", *options, *template, "--parameter-overrides", *given)

    def delete(self) -> list[str]:
        """Delete the stack, its table and its key, as far as they exist; return what was deleted.

        Raises SamError for a stack of this name that this did not make.
        """
        description = self.deployed.described()
        kept: dict[str, str] = {}
        deleted = []
        if description is not None:
            if _OWN_TAG not in description.get("Tags", ()):
                raise SamError(
                    f"the stack {self.lent.stack} was not made by account-smoke; rename or delete it yourself"
                )
            kept = {
                name: resource
                for name, resource in self.deployed.physical_ids().items()
                if name in {"Table", "Key"} and resource
            }
            self.say(f"deleting the stack {self.lent.stack} ...")
            self.deployed.cloudformation.delete_stack(StackName=self.lent.stack)
            self._await_deletion()
            deleted.append(f"stack {self.lent.stack}")
        for arn in self._kept_of_earlier_runs():
            kept.setdefault("Table" if ":table/" in arn else "Key", arn.rpartition("/")[2])
        return deleted + self._delete_kept(kept)

    def _delete_kept(self, kept: Mapping[str, str]) -> list[str]:
        """Delete what the template retains on purpose: here it is a few rows of a test."""
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
        """Return the ARNs of what a killed run left when its stack was gone."""
        client = self.lent.session.client("resourcegroupstaggingapi")
        try:
            tagged = client.get_resources(
                TagFilters=[{"Key": TAG, "Values": ["smoke"]}],
                ResourceTypeFilters=["dynamodb:table", "kms:key"],
            )
        except ClientError as error:
            self.say(f"leftovers of an earlier run cannot be looked for: {error.response['Error']['Code']}")
            return []
        return [resource["ResourceARN"] for resource in tagged["ResourceTagMappingList"]]

    def _await_deletion(self) -> None:
        until = time.monotonic() + _SAM_SECONDS
        while time.monotonic() < until:
            description = self.deployed.described()
            if description is None:
                return
            if description["StackStatus"] == "DELETE_FAILED":
                raise SamError(f"{self.lent.stack}: {description.get('StackStatusReason', 'DELETE_FAILED')}")
            self.pause(_LOOK_SECONDS)
        raise SamError(f"{self.lent.stack} is still being deleted; run make account-smoke again later")

    def _sam(self, command: str, *options: str) -> None:
        self.say(f"sam {command} ...")
        run_sam(command, *options, seconds=_SAM_SECONDS)
