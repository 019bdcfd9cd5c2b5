"""``trainmaster ssh`` and ``forward``: a shell in a running job's container, or one of its ports."""

import re
from typing import Annotated

import typer

from trainmaster_client.cli.container_sessions import Tunnel, open_session
from trainmaster_client.cli.jobs import JobName

MOST_PORTS = 65_535

Host = Annotated[int, typer.Option(min=1, help="Which host, as in algo-1 of its log streams.")]

Print = Annotated[bool, typer.Option("--print", help="Only print the command; start nothing.")]

Json = Annotated[
    bool, typer.Option("--json", help="Print the command and its target as JSON; start nothing.")
]

PORTS = re.compile(r"(?:(?P<local>[0-9]{1,5}):)?(?P<port>[0-9]{1,5})")


def tunnel_of(text: str) -> Tunnel:
    """Read ``6006`` or ``8000:6006``, as ``kubectl port-forward`` does; raises typer.BadParameter."""
    match = PORTS.fullmatch(text)
    ports = [] if match is None else [int(match["local"] or match["port"]), int(match["port"])]
    if not ports or not all(1 <= port <= MOST_PORTS for port in ports):
        raise typer.BadParameter(
            f"{text!r} is neither a port from 1 to {MOST_PORTS}, e.g. 6006, nor two, e.g. 8000:6006"
        )
    return Tunnel(local_port=ports[0], port=ports[1])


Ports = Annotated[
    Tunnel,
    typer.Argument(
        metavar="[LOCAL:]PORT",
        parser=tunnel_of,
        help="Where a program in the container listens, e.g. 6006; before it, if it is to be another, the"
        " port of this machine, e.g. 8000:6006.",
    ),
]


def ssh(job: JobName, *, host: Host = 1, print_: Print = False, as_json: Json = False) -> None:
    """Open a shell in a running job's container. Needs the AWS CLI with its Session Manager plugin."""
    open_session(job, host=host, tunnel=None, print_=print_, as_json=as_json)


def forward(
    job: JobName, ports: Ports, *, host: Host = 1, print_: Print = False, as_json: Json = False
) -> None:
    """Reach a port of a running job's container, e.g. of TensorBoard or a debugger, at this machine's."""
    open_session(job, host=host, tunnel=ports, print_=print_, as_json=as_json)
