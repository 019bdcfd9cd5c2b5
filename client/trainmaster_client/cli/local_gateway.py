"""``trainmaster gateway``: SageMaker's endpoint on this machine, with the queue behind it."""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from trainmaster_client.cli.screen import say
from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.errors.missing_packages import install_hint
from trainmaster_client.gateway import gateway_files
from trainmaster_client.gateway.gateway_files import GatewayOptions, GatewayState

PORT = 4600
ENDPOINT_VARIABLE = "AWS_ENDPOINT_URL_SAGEMAKER"
_PACKAGES = ("starlette", "uvicorn")
_OLDEST_CLI = {1: (1, 29), 2: (2, 13)}
"""Major version -> the first that honours the variable.
Source: SDKs and Tools Reference Guide, Service-specific endpoints, Support by AWS SDKs and tools."""
_CLI_SECONDS = 10.0
_HOST_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")

BehindProxy = Annotated[
    list[str] | None,
    typer.Option(
        "--behind-proxy",
        metavar="HOST",
        help="Host name under which a proxy, as JupyterHub's, shows the pages. May be given several times.",
    ),
]


def gateway(
    *,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = PORT,
    ready: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Written once it answers: pid and URLs, as JSON.")
    ] = None,
    allow_changes: Annotated[
        bool, typer.Option("--allow-changes", help="Let the gateway's pages change jobs, not only read.")
    ] = False,
    behind_proxy: BehindProxy = None,
    print_env: Annotated[
        bool, typer.Option("--print-env", help="Print what a program needs to use the gateway that runs.")
    ] = False,
) -> None:
    """Queue the training jobs of any program that takes another endpoint for SageMaker."""
    if print_env:
        _print_environment(port, gateway_files.state_folder())
        return
    require_packages("gateway", extra="gateway")
    options = GatewayOptions(
        port=port,
        ready=ready,
        folder=gateway_files.state_folder(),
        are_changes_allowed=allow_changes,
        proxies=proxy_names(behind_proxy or ()),
    )
    serve(options, started=_tell)


def proxy_names(given: Sequence[str]) -> frozenset[str]:
    """Read the names of --behind-proxy, without ports; raises InvalidArgumentError for an invalid one."""
    names = [host.lower().partition(":")[0] for host in given]
    for host, name in zip(given, names, strict=True):
        if not _HOST_NAME.fullmatch(name) or "/" in host:
            raise InvalidArgumentError(
                f"--behind-proxy: {host!r} is not a host name;",
                hint="use what the browser's address bar shows between // and /, e.g. hub.example.com.",
            )
    return frozenset(names)


def serve(options: GatewayOptions, *, started: Callable[[GatewayState, str], None]) -> None:
    """Run until it is ended, with the dashboard as its pages; ``started`` hears where it is."""
    from trainmaster_client.dashboard.dashboard_routes import dashboard_pages  # noqa: PLC0415  as below
    from trainmaster_client.gateway.gateway_server import run  # noqa: PLC0415  slow, and needs the extra

    run(options, started=started, more_pages=dashboard_pages)


def require_packages(what: str, *, extra: str) -> None:
    """Raises InvalidArgumentError, which says how to get them."""
    missing = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise InvalidArgumentError(
            f"The {what} needs packages that are not installed: {', '.join(missing)}.",
            hint=install_hint(extra),
        )


def _tell(state: GatewayState, ui_url: str) -> None:
    say(f"The gateway to {state.api_url} answers. In the shell of a program that is to use it:")
    for line in exports(state.endpoint_url, os.environ):
        print(line, flush=True)
    say(f"The dashboard, opened once by this link: {ui_url}")
    for warning in warnings_of(os.environ):
        say(warning)


def _print_environment(port: int, folder: Path) -> None:
    state = gateway_files.read_state(port, folder=folder)
    if state is None or gateway_files.status(state.endpoint_url) is None:
        raise InvalidArgumentError(
            f"No gateway answers on port {port}.", hint="Start it: trainmaster gateway [--port N]"
        )
    for line in exports(state.endpoint_url, os.environ):
        print(line)
    if (ui_url := gateway_files.new_ui_url(state.endpoint_url)) is not None:
        say(f"The dashboard, opened once by this link: {ui_url}")
    for warning in warnings_of(os.environ):
        say(warning)


def exports(endpoint_url: str, env: Mapping[str, str]) -> Iterator[str]:
    """Yield the exports: the endpoint, and that no proxy is asked for it."""
    yield f"export {ENDPOINT_VARIABLE}={shlex.quote(endpoint_url)}"
    name = "no_proxy" if "no_proxy" in env else "NO_PROXY"
    others = [host for host in env.get(name, "").split(",") if host and host != "127.0.0.1"]
    yield f"export {name}={shlex.quote(','.join(['127.0.0.1', *others]))}"


def warnings_of(env: Mapping[str, str]) -> Iterator[str]:
    """Yield a warning for what would not heed the exports here."""
    if env.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "").lower() == "true":
        yield f"warning: AWS_IGNORE_CONFIGURED_ENDPOINT_URLS=true makes clients ignore {ENDPOINT_VARIABLE}."
    version = _cli_version(env)
    if version is not None and version[:2] < _OLDEST_CLI.get(version[0], (0, 0)):
        shown = ".".join(map(str, version))
        yield (
            f"warning: the aws on PATH is {shown}, which does not know {ENDPOINT_VARIABLE}; give it "
            f'--endpoint-url "${ENDPOINT_VARIABLE}", or update it to 1.29 or 2.13.'
        )


def _cli_version(env: Mapping[str, str]) -> tuple[int, ...] | None:
    program = shutil.which("aws", path=env.get("PATH"))
    if program is None:
        return None
    try:
        output = subprocess.run(  # noqa: S603  what the user's own shell would run
            [program, "--version"], capture_output=True, text=True, timeout=_CLI_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(r"aws-cli/(\d+)\.(\d+)\.(\d+)", output.stdout + output.stderr)
    return tuple(map(int, version.groups())) if version else None
