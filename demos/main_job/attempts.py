"""Prints what each attempt did, as a table."""

from typing import Any

from rich.console import Console
from rich.table import Table

Document = dict[str, Any]


def print_steps_lost(facts: Document, console: Console) -> None:
    script = facts["script_mode"]
    console.print(f"Steps lost when they were preempted: job1, started by launch.py, {facts['steps_lost']};")
    console.print(
        f"job5, in script mode, {script['steps_lost']} of at most {script['interval']} between checkpoints."
    )


def print_attempts(attempts: list[Document], console: Console) -> None:
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="bold")
    for heading in ("JOB", "ATTEMPT", "STATUS", "STEPS", "RESUMED FROM", "FIRST LOSS", "LAST LOSS"):
        table.add_column(heading)
    for attempt in attempts:
        resumed, losses = attempt["resumed_from"], attempt["losses"]
        table.add_row(
            attempt["job"].partition("-")[0],
            str(attempt["attempt"]),
            str(attempt["status"]),
            f"{attempt['first_step']}-{attempt['last_step']}",
            f"step {resumed['step']}" if resumed else "-",
            f"{losses[0][1]:.4f}" if losses else "-",
            f"{losses[-1][1]:.4f}" if losses else "-",
        )
    console.print(table)
