"""``make deploy``: the account's pre-flight, ``sam deploy --guided``, and then the table's protection.

A first deployment that fails is rolled back, and a protected table would be left by that. So the first one
runs with ``ProtectTable=false``, and a second change set of the same template switches the protection on. An
upgrade never passes the parameter. If this program dies in between, running it again completes it: the stack
says itself that it is not protected.
"""

import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import ClientError
from trainmaster_client.cli.preflight_report import Planned, findings_of, lines_of, verdict
from trainmaster_client.preflight.deployment_checks import decided_parameters, passes
from trainmaster_client.preflight.preflight_findings import Finding
from trainmaster_client.preflight.saved_parameters import read_saved

PROTECT = "ProtectTable"
SAVED = Path("samconfig.toml")
_SAM = Path(sys.executable).with_name("sam")
_NO_CHANGES = "No updates are to be performed"
"""Only this text of CloudFormation says that a stack is as wanted: ValidationError has many causes."""


def main() -> int:
    """Deploy from the terminal; give sam's exit code, or 1 where the account is not ready."""
    findings, wanted = findings_of(Planned())
    for line in (line for finding in findings for line in lines_of(finding)):
        print(line)
    for line in verdict(findings):
        print(line)
    if not passes(findings) and not _goes_on():
        return 1
    cloudformation = boto3.client("cloudformation", region_name=read_saved(SAVED).region)
    is_first = parameters_of(cloudformation, wanted.stack) is None
    code = subprocess.run(sam_command(findings, is_first=is_first), check=False).returncode
    if code != 0:
        return code
    saved = read_saved(SAVED)
    forget_protection(SAVED)
    protect(boto3.client("cloudformation", region_name=saved.region), saved.stack or wanted.stack, print)
    return 0


def _goes_on() -> bool:
    """Preflight may be wrong where it sees too little: the person decides."""
    return input("Deploy all the same? [y/N] ").strip().lower() == "y"


def sam_command(findings: Sequence[Finding], *, is_first: bool) -> list[str]:
    """Build the call of SAM; what it is given here stands as the suggested answer of its question."""
    if not is_first:
        return [str(_SAM), "deploy", "--guided"]
    suggested = decided_parameters(findings) | {PROTECT: "false"}
    overrides = [f"{name}={value}" for name, value in suggested.items()]
    return [str(_SAM), "deploy", "--guided", "--parameter-overrides", *overrides]


def parameters_of(cloudformation: Any, stack: str) -> dict[str, str] | None:  # noqa: ANN401  made at run time
    """Read the parameters of a stack; None if there is no such stack. Raises ClientError."""
    try:
        (description,) = cloudformation.describe_stacks(StackName=stack)["Stacks"]
    except ClientError as error:
        if error.response["Error"]["Code"] == "ValidationError":
            return None
        raise
    return {
        parameter["ParameterKey"]: parameter.get("ParameterValue", "")
        for parameter in description.get("Parameters") or ()
    }


def protect(cloudformation: Any, stack: str, say: Callable[[str], None]) -> None:  # noqa: ANN401  made at run time
    """Switch the table's protection on where it is off, and change nothing else. Raises ClientError."""
    parameters = parameters_of(cloudformation, stack)
    if parameters is None:
        say(f"There is no stack {stack} here: give the one that was deployed {PROTECT}=true in an update.")
        return
    if parameters.get(PROTECT) != "false":
        return
    others = [{"ParameterKey": name, "UsePreviousValue": True} for name in parameters if name != PROTECT]
    say("The stack is there. Protecting its table against deletion ...")
    try:
        cloudformation.update_stack(
            StackName=stack,
            UsePreviousTemplate=True,
            Parameters=[*others, {"ParameterKey": PROTECT, "ParameterValue": "true"}],
            Capabilities=["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
        )
    except ClientError as error:
        if _NO_CHANGES not in error.response["Error"].get("Message", ""):
            raise
    else:
        cloudformation.get_waiter("stack_update_complete").wait(StackName=stack)
    say("The table is protected.")


def forget_protection(saved: Path) -> None:
    """Take the answer "false" out of what SAM saved, or the next upgrade would unprotect the table."""
    if not saved.exists():
        return
    text = saved.read_text(encoding="utf-8")
    kept = re.sub(rf'\s*,?\s*"{PROTECT}=(\\?["\'])*false(\\?["\'])*"', "", text)  # an entry of a list
    kept = re.sub(rf' ?{PROTECT}=\\?["\']?false\\?["\']?', "", kept)  # a part of one text
    if kept != text:
        saved.write_text(kept, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
