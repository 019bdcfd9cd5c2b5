"""``trainmaster dashboard``: the queue in a browser; the gateway with its pages opened."""

import os
import sys
import webbrowser
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

import typer

from trainmaster_client.cli.local_gateway import BehindProxy, proxy_names, require_packages, serve
from trainmaster_client.cli.screen import say
from trainmaster_client.gateway.gateway_files import GatewayOptions, GatewayState, state_folder

_SCREENS = ("DISPLAY", "WAYLAND_DISPLAY")
"""Variables that a desktop session sets beside its shell, other than on macOS and Windows."""
_SHELLS_OF_OTHERS = ("SSH_CONNECTION", "SSH_TTY", "JUPYTERHUB_USER", "SAGEMAKER_APP_TYPE_LOWERCASE")
"""Set where the browser is on another machine than the shell."""


def dashboard(
    *,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; without it a free one.")
    ] = 0,
    allow_changes: Annotated[
        bool, typer.Option("--allow-changes", help="Let its pages change jobs, not only read.")
    ] = False,
    behind_proxy: BehindProxy = None,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the link instead of opening a browser.")
    ] = False,
    ready: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Written once it answers: pid and URLs, as JSON.")
    ] = None,
) -> None:
    """Show the queue in a browser: pools, jobs, curves, logs, money. It runs until Ctrl-C."""
    require_packages("dashboard", extra="dashboard")

    def started(state: GatewayState, ui_url: str) -> None:
        has_desk = not no_browser and is_at_a_desk(os.environ, sys.platform)
        tell(state, ui_url, open_browser=webbrowser.open if has_desk else None)

    options = GatewayOptions(
        port=port,
        ready=ready,
        folder=state_folder(),
        are_changes_allowed=allow_changes,
        proxies=proxy_names(behind_proxy or ()),
    )
    serve(options, started=started)


def tell(state: GatewayState, ui_url: str, *, open_browser: Callable[[str], bool] | None) -> None:
    """Print the link, or say that the browser opens it; that spends it, and a command makes another."""
    say(f"The dashboard of {state.api_url} answers on port {state.port} of this machine until Ctrl-C.")
    if open_browser is not None and open_browser(ui_url):
        say(f"Your browser opens it. Another link: trainmaster gateway --print-env --port {state.port}")
        return
    print(ui_url, flush=True)
    say("Open this link; it works once. Behind a proxy, such as JupyterLab's, write its address and")
    say(f"/proxy/{state.port} in place of http://127.0.0.1:{state.port}, and start with --behind-proxy HOST")
    say("unless that address is 127.0.0.1 or localhost.")


def is_at_a_desk(env: Mapping[str, str], platform: str) -> bool:
    """Tell whether a browser that is opened here is seen by the person who typed the command."""
    if any(env.get(name) for name in _SHELLS_OF_OTHERS):
        return False
    return platform in {"darwin", "win32"} or any(env.get(name) for name in _SCREENS)
