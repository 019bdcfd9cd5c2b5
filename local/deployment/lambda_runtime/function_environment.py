"""Builds the environment variables of a function.

Source: Lambda Developer Guide, "Defined runtime environment variables".
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from local.deployment.wiring import Function

_EXECUTABLE_PATH = "/usr/local/bin:/usr/bin:/bin"


class Keys(Protocol):
    """Keys of a role session."""

    @property
    def access_key_id(self) -> str: ...

    @property
    def secret_access_key(self) -> str: ...

    @property
    def session_token(self) -> str | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinAddress:
    """Facts that are the same for all functions."""

    region: str
    endpoint_url: str


def function_environment(
    function: Function, keys: Keys, twin_address: TwinAddress, *, log_stream: str
) -> Mapping[str, str]:
    """Answer the whole environment of a process; nothing of the twin's own gets in."""
    code = [str(function.code), *(str(layer) for layer in function.layers)]
    return {
        **function.environment,
        "AWS_ACCESS_KEY_ID": keys.access_key_id,
        "AWS_SECRET_ACCESS_KEY": keys.secret_access_key,
        "AWS_SESSION_TOKEN": keys.session_token or "",
        "AWS_REGION": twin_address.region,
        "AWS_DEFAULT_REGION": twin_address.region,
        "AWS_ENDPOINT_URL": twin_address.endpoint_url,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_EXECUTION_ENV": f"AWS_Lambda_{function.runtime}",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function.memory_mb),
        "AWS_LAMBDA_FUNCTION_NAME": function.name,
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "AWS_LAMBDA_LOG_FORMAT": "JSON" if function.json_logs else "Text",
        "AWS_LAMBDA_LOG_GROUP_NAME": function.log_group,
        "AWS_LAMBDA_LOG_STREAM_NAME": log_stream,
        "LAMBDA_TASK_ROOT": str(function.code),
        "LANG": "en_US.UTF-8",
        "PATH": os.pathsep.join([os.path.dirname(sys.executable), _EXECUTABLE_PATH]),  # noqa: PTH120
        "PYTHONPATH": os.pathsep.join(code),
        "PYTHONUTF8": "1",
        "TZ": ":UTC",
        "_HANDLER": function.handler,
    }
