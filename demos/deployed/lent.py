"""Takes what the user lends: credentials, a role, a bucket, a way into the VPC; refuses before any change."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

STACK = "trainmaster-smoke"
_QUICK = Config(connect_timeout=5, read_timeout=10, retries={"total_max_attempts": 2})
_SESSION = re.compile(r"arn:(?P<partition>[^:]+):sts::(?P<account>\d{12}):assumed-role/(?P<role>[^/]+)/.+")
_WANTED: Mapping[str, tuple[str, str]] = {
    "TRAINMASTER_ROLE": (
        r"arn:[^:]+:iam::\d{12}:role/.+",
        "the ARN of a role that training jobs may run under",
    ),
    "TRAINMASTER_BUCKET": (r"[a-z0-9][a-z0-9.-]+", "a bucket that this role may write to"),
    "TRAINMASTER_VPC_ENDPOINT": (
        r"vpce-[0-9a-z]+",
        "an execute-api endpoint of the VPC that this machine is in: the API is private",
    ),
}


class MissingMeansError(Exception):
    """Something that the user has to give; the message says what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lent:
    session: boto3.Session
    account: str
    region: str
    caller: str
    """The caller's ARN as STS names it."""
    principal: str
    """The caller's IAM ARN, for the stack's parameters."""
    role: str
    bucket: str
    vpc_endpoint: str
    key: str | None
    """A customer managed KMS key for a job's volumes; None: that fact is skipped."""
    stack: str = STACK


def lent_by(environment: Mapping[str, str]) -> Lent:
    """Raises MissingMeansError with everything that is missing."""
    wrong = [
        f"{name} is {'missing' if name not in environment else 'wrong'}: give {what}"
        for name, (pattern, what) in _WANTED.items()
        if not re.fullmatch(pattern, environment.get(name, ""))
    ]
    if wrong:
        raise MissingMeansError("; ".join(wrong))
    try:
        session = boto3.Session()
        caller = session.client("sts", config=_QUICK).get_caller_identity()
        principal = principal_of(caller["Arn"], session)
    except (BotoCoreError, ClientError, ValueError) as error:
        raise MissingMeansError(
            f"no AWS account can be reached ({error}); set AWS_PROFILE, or sign in, and name a region"
        ) from error
    return Lent(
        session=session,
        account=caller["Account"],
        region=str(session.region_name),
        caller=caller["Arn"],
        principal=principal,
        role=environment["TRAINMASTER_ROLE"],
        bucket=environment["TRAINMASTER_BUCKET"],
        vpc_endpoint=environment["TRAINMASTER_VPC_ENDPOINT"],
        key=environment.get("TRAINMASTER_KEY") or None,
    )


def principal_of(caller: str, session: boto3.Session) -> str:
    """Return the role of a session with its path, which only IAM knows; a user's ARN stays as it is."""
    match = _SESSION.fullmatch(caller)
    if match is None:
        return caller
    role: str = session.client("iam", config=_QUICK).get_role(RoleName=match["role"])["Role"]["Arn"]
    return role
