"""``trainmaster local up`` and ``python -m local up``: the twin as a command."""

import argparse
import dataclasses
import errno
import json
import math
import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from trainmaster_client.files.private_files import write_private

from local.config import ReadyInfo, TwinConfig
from local.reaper import kill_descendants, supervise

DEFAULT_PORT = 4599
_REFUSED = 2
"""Exit code for what the user can cure: arguments, port, policy, template."""
_CLOSE_SECONDS = 10.0
_LOOK_SECONDS = 0.5
_TEXT = """\
  The twin is up after {seconds:.1f} s: {endpoint_url}
  Use it from another shell:

    export AWS_ENDPOINT_URL={endpoint_url}
    export AWS_ACCESS_KEY_ID={access_key_id}
    export AWS_SECRET_ACCESS_KEY={secret_access_key}
    export AWS_DEFAULT_REGION={region}
    export TRAINMASTER_API_URL={api_url}
    export TRAINMASTER_ROLE={role_arn}
    export TRAINMASTER_BUCKET={bucket}
    export SAGEMAKER_USER_CONFIG_OVERRIDE={sdk_defaults}
    export SAGEMAKER_SUPPRESS_V2_WARNING=1

  Training jobs can use that role and that bucket; the SageMaker SDK does by itself.
  Ctrl-C ends the twin.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the twin until it is asked to end; answers the exit code."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.start is not None and arguments.clock != "manual":
        parser.error("--start needs --clock manual: the real clock is the machine's")
    reaper = os.getpid()
    try:
        return supervise(lambda: _run(arguments, reaper))
    finally:
        forget(arguments.ready, reaper)  # of a twin that was killed


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="local up", description="Run the local twin of the whole stack.")
    parser.add_argument(
        "--port", type=_port, default=DEFAULT_PORT, help="port on 127.0.0.1; 0 takes a free one"
    )
    parser.add_argument("--state", type=Path, help="folder that remembers the policy and keeps logs")
    parser.add_argument("--policy", type=Path, help="policy document to begin with, YAML or JSON")
    parser.add_argument("--parameter", type=_parameter, action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--clock", choices=["real", "manual"], default="real")
    parser.add_argument(
        "--start", type=_instant, metavar="INSTANT", help="where a manual clock begins, ISO 8601 (now)"
    )
    parser.add_argument("--speed", type=_speed, default=60.0, help="divides the twin's own waits (60)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--world",
        default="kind",
        metavar="NAME|FILE",
        help="how AWS behaves: kind, harsh, or a file of values (kind)",
    )
    parser.add_argument("--ready", type=Path, help="file to write when everything is deployed")
    parser.add_argument("--journal", type=Path, help="file for one line a call and process event")
    parser.add_argument("--json", action="store_true", help="print the ready file's JSON instead of the text")
    return parser


def _port(text: str) -> int:
    port = int(text)
    if not 0 <= port <= 65535:  # noqa: PLR2004  of TCP
        raise argparse.ArgumentTypeError(f"{port} is no port")
    return port


def _speed(text: str) -> float:
    speed = float(text)
    if not (speed > 0 and math.isfinite(speed)):
        raise argparse.ArgumentTypeError("must be above 0")
    return speed


def _instant(text: str) -> datetime:
    instant = datetime.fromisoformat(text)
    if instant.tzinfo is None:
        raise argparse.ArgumentTypeError(f"{text} names no zone; use e.g. 2026-11-22T08:00:00Z")
    return instant


def _parameter(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def _run(arguments: argparse.Namespace, reaper: int) -> int:
    stop = _stop_on_signals()
    # Here, not at the top: half a second that the arguments' errors should not cost.
    from local.deployment.deployment_errors import DeploymentError  # noqa: PLC0415
    from local.policy_file import read_policy  # noqa: PLC0415
    from local.twin import Twin  # noqa: PLC0415
    from local.world_file import read_world  # noqa: PLC0415

    try:
        config = replace(_config(arguments), world=read_world(arguments.world))
        if arguments.policy is not None:
            config = replace(config, policy=read_policy(arguments.policy))
        began = time.monotonic()
        with Twin(config) as twin:
            seconds, ready = time.monotonic() - began, replace(twin, pid=reaper)
            if arguments.ready is not None:
                write_private(arguments.ready, _in_json(ready))
            _say(_in_json(ready) if arguments.json else _in_words(ready, seconds))
            wait_for(stop)
            forget(arguments.ready, reaper)
    except DeploymentError as error:
        return _refuse(str(error))
    except OSError as error:
        return _refuse(_explained(error, arguments.port))
    return 0


def _config(arguments: argparse.Namespace) -> TwinConfig:
    return TwinConfig(
        port=arguments.port,
        state=arguments.state,
        parameters=dict(arguments.parameter),
        manual=arguments.clock == "manual",
        start=arguments.start,
        speed=arguments.speed,
        seed=arguments.seed,
        journal=arguments.journal,
        ready=arguments.ready,
    )


def _stop_on_signals() -> threading.Event:
    stop = threading.Event()

    def told(_number: int, _frame: object) -> None:
        stop.set()
        late = threading.Timer(_CLOSE_SECONDS, _give_up)
        late.daemon = True
        late.start()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, told)
    return stop


def wait_for(stop: threading.Event) -> None:
    """Look up from the wait occasionally.

    A signal that arrives just before the main thread blocks, or in another thread, does not end the wait,
    and its handler runs only after it.
    """
    while not stop.wait(_LOOK_SECONDS):
        pass


def _give_up() -> None:
    """Leave the hard way, as closing hangs."""
    kill_descendants()
    os._exit(1)


def forget(file: Path | None, pid: int) -> None:
    """Remove the ready file, unless it is another twin's by now."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        if file is not None and json.loads(file.read_text())["pid"] == pid:
            file.unlink()


def _in_json(ready: ReadyInfo) -> str:
    return json.dumps(dataclasses.asdict(ready))


def _in_words(ready: ReadyInfo, seconds: float) -> str:
    words = dataclasses.asdict(ready) | {"sdk_defaults": shlex.quote(ready.sdk_defaults)}
    return _TEXT.format(seconds=seconds, **words)


def _say(text: str) -> None:
    with suppress(OSError):  # nobody may be listening
        print(text, flush=True)


def _explained(error: OSError, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} is in use; choose another one with --port"
    return ": ".join(str(part) for part in (error.filename, error.strerror or error) if part)


def _refuse(problem: str) -> int:
    print(f"local up: {problem}", file=sys.stderr, flush=True)
    return _REFUSED
