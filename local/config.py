"""The decisions of a twin's user, and the facts the user gets about it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from local.worlds import KIND, World

TEMPLATE = Path(__file__).parents[1] / "template.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinConfig:
    template: Path = TEMPLATE
    region: str = "us-east-1"
    port: int = 0
    """0: any free one."""
    state: Path | None = None
    """Folder that keeps the policy, logs and working files; None: one that goes with the twin."""
    policy: Mapping[str, Any] | None = None
    """The policy document; None takes the one that the state folder remembers, if any."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    manual: bool = False
    """Whether the clock stands still until it is moved."""
    start: datetime | None = None
    """Begin of a manual clock; None means now."""
    speed: float = 60.0
    """Divides the twin's own waits; the schedules are AWS's and keep their minutes."""
    seed: int = 0
    journal: Path | None = None
    ready: Path | None = None
    """File written once the twin is ready; one that an earlier twin left is removed first."""
    world: World = KIND


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyInfo:
    """The fields of the ready file."""

    pid: int
    """The process to end the twin by."""
    endpoint_url: str
    api_url: str
    control_url: str = field(repr=False)
    """Has the token of the control calls as its last part: whoever has it runs the twin."""
    region: str
    account_id: str
    access_key_id: str
    secret_access_key: str = field(repr=False)
    role_arn: str
    """ARN of a role that training jobs may run under."""
    bucket: str
    """A bucket that exists, for training input and output."""
    sdk_defaults: str
    """Path of the file that SAGEMAKER_USER_CONFIG_OVERRIDE should name."""
