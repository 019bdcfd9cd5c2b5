"""``trainmaster mcp``: read-only tools for assistants, over standard input and output."""

import importlib.util
from datetime import UTC, datetime

from trainmaster import __version__

from trainmaster_client.cli.connection import aws_client, connect
from trainmaster_client.cli.silences import Connection
from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.errors.missing_packages import install_hint


def mcp() -> None:
    """Serve read-only tools to an assistant (MCP, stdio): queue, job, why, usage, timeline."""
    if importlib.util.find_spec("mcp") is None:
        raise InvalidArgumentError(
            "trainmaster mcp needs a package that is not installed: mcp.",
            hint=install_hint("mcp"),
        )
    from trainmaster_client.assistants.array_tools import ArrayTools  # noqa: PLC0415
    from trainmaster_client.assistants.mcp_server import make_server  # noqa: PLC0415  slow, and an extra
    from trainmaster_client.assistants.queue_tools import QueueTools  # noqa: PLC0415

    connection = Connection(lambda: connect(quiet=True))
    tools = QueueTools(
        api=lambda: connection.api, logs_client=lambda: aws_client("logs"), now=lambda: datetime.now(UTC)
    )
    array_tools = ArrayTools(api=lambda: connection.api, sagemaker=lambda: aws_client("sagemaker"))
    make_server(tools, array_tools, version=__version__, lost=connection.lost).run("stdio")
