"""MiniStack as a process of its own: an emulator of AWS that is not ours. It checks rights and signatures."""

import os
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from demos.stage.processes import ROOT, Program

ACCOUNT = "123456789012"
REGION = "us-east-1"
ROOT_KEY = "test"
"""Access key and secret of the account's root user. Source: MiniStack's documentation, authentication."""
PROGRAM = ROOT / ".venv-ministack/bin/ministack"
START_SECONDS = 60.0
_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class MiniStack:
    endpoint_url: str

    def environment(self) -> dict[str, str]:
        """Return the variables by which boto3 and ``sam`` reach it, as the root user of its account."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint_url,
            "AWS_ACCESS_KEY_ID": ROOT_KEY,
            "AWS_SECRET_ACCESS_KEY": ROOT_KEY,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
            "SAM_CLI_TELEMETRY": "0",
        }

    def url(self, path: str) -> str:
        return f"{self.endpoint_url}{path}"


@contextmanager
def running_ministack(folder: Path, *, sagemaker_url: str) -> Iterator[MiniStack]:
    """Run MiniStack on a free port of the loopback interface; it ends with the block.

    Args:
        folder: Takes its files and its log, ``ministack.log``.
        sagemaker_url: Where the deployed functions find SageMaker.

    Raises:
        TimeoutError: It did not start; the message has its log.
    """
    port = free_port()
    stack = MiniStack(endpoint_url=f"http://127.0.0.1:{port}")
    own = [f"{name}={value}" for name, value in _environment(folder, port, sagemaker_url).items()]
    command: list[str | Path] = ["env", "-i", *own, PROGRAM]  # it passes settings on to the functions
    with Program("MiniStack", command, log=folder / "ministack.log", cwd=folder) as program:
        _wait_for(stack, program)
        yield stack


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _environment(folder: Path, port: int, sagemaker_url: str) -> dict[str, str]:
    inherited = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    return {
        **inherited,
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "AUTH": "true",  # verify signatures, and evaluate the policies of users, roles, queues and topics
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "IOT_MTLS_ENABLED": "0",  # else a listener on all interfaces, whatever BIND_HOST says
        "MINISTACK_ACCOUNT_ID": ACCOUNT,
        "MINISTACK_REGION": REGION,
        "AWS_ENDPOINT_URL_SAGEMAKER": sagemaker_url,
        "AWS_EC2_METADATA_DISABLED": "true",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _wait_for(stack: MiniStack, program: Program) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not _is_healthy(stack):
        if program.exit_code is not None or time.monotonic() > deadline:
            raise TimeoutError("\n".join(["MiniStack did not start; its log:", *program.lines(), ""]))
        time.sleep(_POLL_SECONDS)


def _is_healthy(stack: MiniStack) -> bool:
    try:
        with urllib.request.urlopen(stack.url("/_ministack/health"), timeout=2) as answer:  # noqa: S310  our own
            return bool(answer.status == 200)  # noqa: PLR2004  HTTP's OK
    except (urllib.error.URLError, OSError):
        return False
