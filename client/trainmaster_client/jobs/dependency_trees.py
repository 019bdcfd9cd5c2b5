"""A job among those it waits for and those that wait for it, as lines of at most 80 columns."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from trainmaster_client.api import ApiClient, Document
from trainmaster_client.errors import NotFoundError
from trainmaster_client.http.answers import printable
from trainmaster_client.jobs.array_views import array_view, is_array, job_or_array
from trainmaster_client.jobs.instants import clock

COLUMNS = 80
MOST_JOBS = 200
"""Jobs that one tree reads; what lies behind them is only counted."""
DEEPEST = 36
"""Columns that a branch is moved in at most: a long chain goes straight down from there."""
_BRANCH, _LAST, _DOWN, _NONE = "+- ", "`- ", "|  ", "   "


@dataclass(slots=True, kw_only=True)
class DependencyTree:
    """Reads jobs as it comes to them, each once."""

    api: ApiClient
    now: datetime
    _documents: dict[str, Document | None] = field(default_factory=dict)
    _drawn: set[str] = field(default_factory=set)

    def lines(self, name: str) -> list[str]:
        """Draw the jobs before it, then the job with all that follow it. Raises NotFoundError."""
        document = job_or_array(lambda: self.api.job(name), lambda: self.api.array(name))
        own_name = str(document.get("name"))
        self._documents[own_name] = document
        parents = [parent for parent in document.get("after") or () if parent.get("job")]
        lines = [self._cut(line) for parent in parents for line in self._parent_lines(parent)]
        return [*lines, *(self._cut(line) for line in self._lines(document, "", "", is_asked=True))]

    def documents(self, name: str) -> list[Document]:
        """Return the jobs that ``lines`` draws as the API answers them. Raises NotFoundError."""
        self.lines(name)
        return [document for document in self._documents.values() if document is not None]

    def _parent_lines(self, parent: Document) -> Iterator[str]:
        document = self._read(str(parent["job"]))
        standing = _standing(document, self.now) if document else printable(parent.get("state") or "?")
        others = len([parent for parent in (document or {}).get("after") or () if parent.get("job")])
        before = f", after {others} other{'s' if others > 1 else ''}" if others else ""
        yield f"{printable(parent['job'])}  {standing}{before}"
        yield f"   v {printable(parent.get('type'))}"

    def _lines(self, document: Document, first: str, rest: str, *, is_asked: bool = False) -> Iterator[str]:
        name = str(document.get("name"))
        again = name in self._drawn
        self._drawn.add(name)
        mark = " <" if is_asked and document.get("dependents") else ""
        yield f"{first}{printable(name)}  {_standing(document, self.now)}{mark}"
        if why := _why(document):
            yield f"{rest}   {why}"
        if again:
            return
        children = [str(child) for child in document.get("dependents") or ()]
        unseen = int(document.get("dependents_count") or 0) - len(children)
        for number, child in enumerate(children, start=1):
            is_last = number == len(children) and unseen <= 0
            below = rest if len(rest) >= DEEPEST else rest + (_NONE if is_last else _DOWN)
            yield from self._child_lines(child, name, rest + (_LAST if is_last else _BRANCH), below)
        if unseen > 0:
            yield f"{rest}{_LAST}{unseen} more"

    def _child_lines(self, child: str, parent: str, first: str, rest: str) -> Iterator[str]:
        document = self._read(child)
        if document is None:
            yield f"{first}{printable(child)}"
            return
        types = [str(before["type"]) for before in document.get("after") or () if before.get("job") == parent]
        kind = f"{types[0]} " if types and types[0] != "afterok" else ""
        yield from self._lines(document, f"{first}{kind}", rest)

    def _read(self, name: str) -> Document | None:
        """Return the job; None if it is gone or the tree has read as many as it may."""
        if name not in self._documents and len(self._documents) < MOST_JOBS:
            try:
                self._documents[name] = job_or_array(
                    lambda: self.api.job(name, estimate=False), lambda: self.api.array(name)
                )
            except NotFoundError:
                self._documents[name] = None
        return self._documents.get(name)

    @staticmethod
    def _cut(line: str) -> str:
        return line if len(line) <= COLUMNS else f"{line[: COLUMNS - 3]}..."


def _standing(document: Document, now: datetime) -> str:
    if is_array(document):
        view = array_view(document)
        return f"{view.state}, {view.counts}"
    state = printable(document.get("state"))
    start: Any = document.get("estimated_start")
    if isinstance(start, dict) and start.get("p50"):
        return f"{state}, likely starts {clock(datetime.fromisoformat(start['p50']), now=now)}"
    end = document.get("ended_at")
    if end:
        return f"{state} {clock(datetime.fromisoformat(end), now=now)}"
    certain = document.get("ends_by")
    return f"{state}, ends by {clock(datetime.fromisoformat(certain), now=now)}" if certain else state


def _why(document: Document) -> str:
    """The reason of a wait or of an end that is not the job's own doing."""
    waiting, reason = document.get("waiting") or {}, document.get("reason") or {}
    if document.get("state") in {"failed", "stopped"} and reason.get("message"):
        return printable(reason["message"])
    return printable(waiting["message"]) if waiting.get("message") else ""
