"""``sam`` as a user runs it, and what CloudFormation then says of the stack."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import ClientError

from demos.stage.evidence import Document
from demos.stage.processes import ROOT


class SamError(Exception):
    """``sam`` ended with an error, or not at all; the message has what it printed."""


def run_sam(command: str, *options: str, seconds: float, env: Mapping[str, str] | None = None) -> None:
    """Run ``sam`` with the checkout's configuration and variables beside those of this process.

    Raises:
        SamError: It failed, or took longer than ``seconds``.
    """
    scripts = Path(sys.executable).parent
    environment = {**os.environ, **(env or {}), "LAYER_PYTHON": sys.executable}
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
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        printed = (error.stdout or b"") + (error.stderr or b"")
        raise SamError(f"{error}:\n{printed.decode(errors='replace')}") from error
    if done.returncode:
        raise SamError(f"sam {command} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployedStack:
    session: boto3.Session
    name: str

    @property
    def cloudformation(self) -> Any:  # noqa: ANN401  boto3 makes its clients at run time
        return self.session.client("cloudformation")

    def described(self) -> Document | None:
        """Return the stack's description; None if there is no such stack."""
        try:
            stacks = self.cloudformation.describe_stacks(StackName=self.name)["Stacks"]
        except ClientError as error:
            if error.response["Error"]["Code"] == "ValidationError":
                return None
            raise
        return dict(stacks[0])

    def outputs(self) -> dict[str, str]:
        outputs = (self.described() or {}).get("Outputs", ())
        return {output["OutputKey"]: output["OutputValue"] for output in outputs}

    def resources(self) -> list[Document]:
        """Return the stack's resources as CloudFormation lists them."""
        pages = self.cloudformation.get_paginator("list_stack_resources").paginate(StackName=self.name)
        return [dict(resource) for page in pages for resource in page["StackResourceSummaries"]]

    def physical_ids(self) -> dict[str, str]:
        """Return physical ids by logical ones."""
        return {
            resource["LogicalResourceId"]: resource.get("PhysicalResourceId", "")
            for resource in self.resources()
        }
