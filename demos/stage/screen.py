"""Shows people what happens in a demo and why, and the queue after it."""

from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from demos.stage.evidence import instant_of

Document = dict[str, Any]

STYLES = {
    "running": "green",
    "completed": "green",
    "failed": "red",
    "stopped": "red",
    "preempting": "yellow",
    "preempted": "yellow",
}
MILESTONES = frozenset({"pending", "running", "preempting", "preempted", "completed", "failed", "stopped"})
"""States worth a line; ``starting`` lasts a blink here."""


class Screen:
    """Prints only what is new. Jobs can be given a label: the SDK's names are too long to read."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.reached = ""
        """The last thing of the story that went well."""
        self._labels: dict[str, str] = {}
        self._told: set[tuple[str, str, str]] = set()
        self._warned: set[str] = set()
        self._shown: list[tuple[str, str]] = []

    def say(self, line: str) -> None:
        self.console.print(line, markup=False)

    def name(self, training_job_name: str, label: str) -> None:
        """Show this training job as ``label`` from now on."""
        self._labels[training_job_name] = label

    def show(self, queue: list[Document], jobs: list[Document]) -> None:
        """Print news of the jobs, each with its reason; the queue, if it changed; who is to be stopped."""
        news = sorted(line for job in jobs for line in self._news(job))
        for (at, _), line in news:
            self.console.print(Text.assemble((f"{at[11:19]}  ", "dim"), line))
        rows = [(self._short(job["name"]), job["state"]) for job in queue]
        if rows != self._shown:
            self._shown = rows
            self.console.print(self._table(queue) if queue else Text("The queue is empty.", "bold"), Text())
        for job in jobs:
            self._warn(job)

    def _warn(self, job: Document) -> None:
        last = job["attempts"][-1] if job["attempts"] else {}
        since, due = last.get("idle_since"), last.get("stop_due")
        if since and due and job["name"] not in self._warned:
            self._warned.add(job["name"])
            self.say(f"{since[11:19]}  {job['name']} is idle and will be stopped at {due[11:19]}")

    def _news(self, job: Document) -> list[tuple[tuple[str, bool], str]]:
        news: list[tuple[tuple[str, bool], str]] = []
        for step in job["history"]:
            key = (job["name"], step["at"], step["to"])
            if key not in self._told and step["to"] in MILESTONES:
                self._told.add(key)
                news.append((instant_of(step), self._sentence(job["name"], step)))
        return news

    def _sentence(self, name: str, step: Document) -> str:
        attempt = f" (attempt {step['attempt']})" if step["attempt"] else ""
        says_more = step["reason"] and step["reason"]["code"] != step["to"]
        reason = f": {self._short(step['reason']['message'])}" if says_more else ""
        return f"{self._short(name)} is {step['to']}{attempt}{reason}"

    def _short(self, text: str) -> str:
        for name, label in self._labels.items():
            text = text.replace(name, label)
        return text

    def _table(self, queue: list[Document]) -> Table:
        made = table("", "JOB", "STATE", "PRIORITY", "WHY IT WAITS")
        for job in queue:
            waiting = job["waiting"]["message"] if job["waiting"] else ""
            state = Text(job["state"], style=STYLES.get(job["state"], ""))
            made.add_row("   ", self._short(job["name"]), state, str(job["priority"]), self._short(waiting))
        return made


def table(*headings: str, gap: int = 3) -> Table:
    """Make a table without lines, its columns ``gap`` characters apart."""
    made = Table(box=None, padding=(0, gap, 0, 0), header_style="bold")
    for heading in headings:
        made.add_column(heading)
    return made
