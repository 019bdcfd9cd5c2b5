"""What ``benchmarks.scale`` measured, as tables for a person."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

Row = Sequence[object]


def tables(facts: Mapping[str, Any]) -> Iterator[str]:
    """Those whose facts were measured, line by line."""
    for title, head, rows in _TABLES:
        found = list(rows(facts))
        if found:
            yield ""
            yield title
            yield from _aligned([head, *found])
    yield ""


def _aligned(rows: Sequence[Row]) -> Iterator[str]:
    texts = [[f"{cell:,}" if isinstance(cell, int | float) else str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    for row in texts:
        yield "  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))


def _plans(facts: Mapping[str, Any]) -> Iterator[Row]:
    for one in (*facts["plans"], *facts.get("teams", ())):
        yield one["running"], one["teams"], one["preemptors"], round(1000 * min(one["cpu_s"]))


def _starts(facts: Mapping[str, Any]) -> Iterator[Row]:
    for one in facts.get("starting_passes", ()):
        calls = sum(one["calls"].values())
        yield one["delay_ms"], one["starts"], one["cpu_s"], one["starts_per_cpu_s"], calls


def _looks(facts: Mapping[str, Any]) -> Iterator[Row]:
    for one in facts.get("api", {}).get("looks", ()):
        yield one["position"] or "over 1,000", one["cpu_s"], one["note"] or "estimated"


def _dry_runs(facts: Mapping[str, Any]) -> Iterator[Row]:
    for one in facts.get("api", {}).get("dry_runs", ()):
        calls = sum(one["calls"].values())
        whole = "a part" if one["is_truncated"] else "all"
        yield one["pools"], one["delay_ms"], one["seconds"], one["cpu_s"], calls, whole


def _passes(facts: Mapping[str, Any]) -> Iterator[Row]:
    for one in facts["sizes"]:
        later, first = one["pass"], one["first_pass"]
        size = (one["running"], one["waiting"], one["teams"], one["lanes"])
        counted = (round(later["cpu_ms"]), later["calls"], later["rcu"], later["wcu"])
        of_first = (round(first["cpu_ms"]), first["calls"], first["wcu"])
        yield *size, *counted, *of_first, max(one["largest_rows_bytes"].values())


def _depths(facts: Mapping[str, Any]) -> Iterator[Row]:
    for one in facts.get("depths", ()):
        measured = "computed" if one["computed"] else "measured"
        yield one["pending"], round(one["cpu_ms"]), one["calls"], one["rcu"], measured


def _minutes(facts: Mapping[str, Any]) -> Iterator[Row]:
    for one in facts.get("minutes", ()):
        yield one["running"], one["pools"], one["starts"], one["cpu_ms"], one["calls"], one["rcu"]


def _rings(facts: Mapping[str, Any]) -> Iterator[Row]:
    for one in facts.get("pools", ()):
        waits = one["waits_seconds"]
        yield one["load"]["pools"], one["rings"], waits["p50"], waits["p99"], waits["longest"]


_OF_PASSES = (
    *("running", "waiting", "teams", "lanes"),
    *("CPU ms", "calls", "RCU", "WCU"),
    *("first: CPU ms", "calls", "WCU"),
    "largest row, bytes",
)
_TABLES: Iterable[tuple[str, Row, Any]] = (
    ("a plan", ("running", "teams", "preemptors", "CPU ms"), _plans),
    ("a pass that starts jobs", ("AWS ms", "starts", "CPU s", "starts a CPU s", "calls"), _starts),
    ("GET /jobs/{name} with estimate", ("position", "CPU s", "estimate"), _looks),
    ("PUT /policy, dry run", ("pools", "AWS ms", "seconds", "CPU s", "calls", "looked at"), _dry_runs),
    ("a pass over a full pool, and the first one", _OF_PASSES, _passes),
    ("a pass over a deep queue", ("waiting", "CPU ms", "calls", "RCU", ""), _depths),
    ("a minute (computed)", ("running", "pools", "starts", "CPU ms", "calls", "RCU"), _minutes),
    ("from a ring to its pass, seconds", ("pools", "rings", "p50", "p99", "longest"), _rings),
)
