"""The list of commands in ``--help``: by what they are for, each with its whole sentence."""

from difflib import get_close_matches
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from typer.core import TyperGroup


class Panel(StrEnum):
    """Panels in the order of the help."""

    JOBS = "Jobs"
    POOLS = "Queue and pools"
    MONEY = "Money and rules"
    SETUP = "Set-up"
    ADMIN = "Administration"


OTHERS = "Other commands"

_ELSEWHERE = MappingProxyType(
    {
        **dict.fromkeys(("ls", "list", "ps", "jobs", "status", "squeue"), "queue"),
        **dict.fromkeys(("describe", "get", "info", "scontrol"), "show"),
        **dict.fromkeys(("stop", "kill", "delete", "rm", "scancel"), "cancel"),
        **dict.fromkeys(("log", "tail"), "logs"),
        **dict.fromkeys(("sbatch", "add", "launch", "start"), "submit"),
        **dict.fromkeys(("cost", "costs", "bill", "sreport"), "usage"),
        **dict.fromkeys(("sinfo", "capacity", "nodes"), "pools"),
        **dict.fromkeys(("sacct", "past", "ended"), "history"),
        **dict.fromkeys(("up", "twin"), "local up"),
    }
)
"""Other tools' names for the commands."""


class GroupedCommands(TyperGroup):
    """Reads ``rich_help_panel``; plain text, so that it reads the same in a pipe."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401, ARG002  typer's own copy of click
        shown = [(name, command) for name, command in self.commands.items() if not command.hidden]
        for panel in (*Panel, OTHERS):
            rows = [(name, _sentence(command)) for name, command in shown if _panel(command) == panel]
            if rows:
                with formatter.section(panel):
                    formatter.write_dl(rows)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401  likewise
        name = args[0]
        meant = _ELSEWHERE.get(name.lower())
        is_known = name in self.commands or get_close_matches(name, self.commands)
        if meant and not is_known and not ctx.resilient_parsing:
            ctx.fail(f"No such command {name!r}. Did you mean {meant!r}?")
        return super().resolve_command(ctx, args)


def _panel(command: Any) -> str:  # noqa: ANN401  likewise
    panel = getattr(command, "rich_help_panel", None)
    return panel if panel in set(Panel) else OTHERS


def _sentence(command: Any) -> str:  # noqa: ANN401  likewise
    """Return the first sentence of a command's help, uncut."""
    text = " ".join((command.short_help or command.help or "").split("\n\n")[0].split())
    head, stop, _ = text.partition(". ")
    return head + stop.rstrip() if stop else text
