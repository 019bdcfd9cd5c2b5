"""The tools as a server of the Model Context Protocol, on standard input and output."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Annotated, Literal

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field

from trainmaster_client.assistants.array_tools import ArrayTools
from trainmaster_client.assistants.queue_tools import MOST_JOBS, MOST_LOG_LINES, QueueTools
from trainmaster_client.assistants.tool_answers import (
    NOTICE,
    ArrayAnswer,
    ArraysAnswer,
    JobAnswer,
    QueueAnswer,
    ResultsAnswer,
    TimelineAnswer,
    TreeAnswer,
    UsageAnswer,
    WhyAnswer,
)
from trainmaster_client.errors import TrainmasterClientError

INSTRUCTIONS = (
    "Reads the queue of SageMaker training jobs that trainmaster governs, with the rights of its user, "
    f"and changes nothing. {NOTICE} To change something, tell the user the command: trainmaster --help."
)
_READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True)
_DAYS = 31
"""The longest time that the API answers for."""

JobName = Annotated[str, Field(max_length=63, description="The job's name, or that of any of its attempts.")]
Name = Annotated[str | None, Field(max_length=63)]
ArrayName = Annotated[str, Field(max_length=63, description="The array's name.")]
Mine = Annotated[bool, Field(description="Only those that the user submitted.")]
Largest = Annotated[bool, Field(description="With by: whether the largest value is the best.")]
Limit = Annotated[int, Field(ge=1, le=MOST_JOBS)]
LogLines = Annotated[int, Field(ge=0, le=MOST_LOG_LINES, description="How many of the last log lines.")]
Days = Annotated[float, Field(gt=0, le=_DAYS)]
Hours = Annotated[float, Field(gt=0, le=24 * _DAYS)]
Grouping = Literal["team", "user", "job", "day", "model_name", "array"]


Asked = Callable[[], AbstractContextManager[None]]
"""Around each call of the API."""


def make_server(
    tools: QueueTools,
    array_tools: ArrayTools,
    *,
    version: str,
    lost: Callable[[TrainmasterClientError], None] = lambda _error: None,
) -> MCPServer:
    """``lost`` is called with each error of the API, before it becomes the tool's."""
    server: MCPServer = MCPServer(
        "trainmaster", version=version, instructions=INSTRUCTIONS, log_level="WARNING"
    )

    @contextmanager
    def asked() -> Iterator[None]:
        try:
            yield
        except TrainmasterClientError as error:
            lost(error)
            raise ToolError(str(error)) from error

    _add_job_tools(server, tools, asked)
    _add_array_tools(server, array_tools, asked)
    _add_history_tools(server, tools, asked)
    return server


def _add_job_tools(server: MCPServer, tools: QueueTools, answering: Asked) -> None:
    @server.tool(annotations=_READS)
    def queue(pool: Name = None, team: Name = None, state: Name = None, limit: Limit = 50) -> QueueAnswer:
        """Jobs that run and wait, in queue order, each with the reason why it waits. Ended ones by state."""
        with answering():
            return tools.queue({"pool": pool, "team": team, "state": state}, limit=limit)

    @server.tool(annotations=_READS)
    def job(name: JobName, log_lines: LogLines = 0) -> JobAnswer:
        """One job: state, attempts and why they ended, diagnosis of a failure, cost, its last log lines."""
        with answering():
            return tools.job(name, log_lines=log_lines)

    @server.tool(annotations=_READS)
    def why(name: JobName) -> WhyAnswer:
        """Why a job does not run, when it is likely to start, who is ahead, and which ends it waits for."""
        with answering():
            return tools.why(name)

    @server.tool(annotations=_READS)
    def tree(name: JobName) -> TreeAnswer:
        """Draw the jobs that a job waits for and those that wait for it, with their states and why."""
        with answering():
            return tools.tree(name)


def _add_array_tools(server: MCPServer, tools: ArrayTools, answering: Asked) -> None:
    @server.tool(annotations=_READS)
    def arrays(
        pool: Name = None, team: Name = None, state: Name = None, *, mine: Mine = False, limit: Limit = 50
    ) -> ArraysAnswer:
        """Arrays (sweeps): many tasks of one request, with counts of their states. Ended ones by state."""
        filters = {"pool": pool, "team": team, "state": state, "mine": mine or None}
        with answering():
            return tools.arrays(filters, limit=limit)

    @server.tool(annotations=_READS)
    def array(name: ArrayName) -> ArrayAnswer:
        """One array: counts, why no further task starts, its failed tasks, commands to cancel or rerun it."""
        with answering():
            return tools.array(name)

    @server.tool(annotations=_READS)
    def results(name: ArrayName, by: Name = None, *, largest: Largest = False) -> ResultsAnswer:
        """Values, final metrics, state and cost of each task of an array; the best first by a metric."""
        with answering():
            return tools.results(name, by=by, largest=largest)


def _add_history_tools(server: MCPServer, tools: QueueTools, answering: Asked) -> None:
    @server.tool(annotations=_READS)
    def usage(group_by: Grouping = "team", team: Name = None, days: Days = 30) -> UsageAnswer:
        """Instance-hours and USD of the last days, in groups, with what was productive and what was lost."""
        with answering():
            return tools.usage(group_by, team=team, days=days)

    @server.tool(annotations=_READS)
    def timeline(pool: Name = None, hours: Hours = 24) -> TimelineAnswer:
        """Which attempt of which job held which instances when, and who preempted it, in the last hours."""
        with answering():
            return tools.timeline(pool, hours=hours)
