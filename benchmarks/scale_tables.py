"""Writes what ``benchmarks.scale`` measured as tables for people."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from benchmarks.tables import Row, aligned


def tables(facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield the tables whose facts were measured, line by line."""
    for title, head, rows in _TABLES:
        shown_rows = list(rows(facts))
        if shown_rows:
            yield ""
            yield title
            yield from aligned([head, *shown_rows])
    yield ""


def _plans(facts: Mapping[str, Any]) -> Iterator[Row]:
    for plan in (*facts["plans"], *facts.get("teams", ())):
        yield plan["running"], plan["teams"], plan["preemptors"], round(1000 * min(plan["cpu_s"]))


def _starts(facts: Mapping[str, Any]) -> Iterator[Row]:
    for starts in facts.get("starting_passes", ()):
        calls = sum(starts["calls"].values())
        yield starts["delay_ms"], starts["starts"], starts["cpu_s"], starts["starts_per_cpu_s"], calls


def _looks(facts: Mapping[str, Any]) -> Iterator[Row]:
    for look in facts.get("api", {}).get("looks", ()):
        yield look["position"] or "over 1,000", look["cpu_s"], look["note"] or "estimated"


def _dry_runs(facts: Mapping[str, Any]) -> Iterator[Row]:
    for dry_run in facts.get("api", {}).get("dry_runs", ()):
        calls = sum(dry_run["calls"].values())
        whole = "a part" if dry_run["is_truncated"] else "all"
        yield dry_run["pools"], dry_run["delay_ms"], dry_run["seconds"], dry_run["cpu_s"], calls, whole


def _passes(facts: Mapping[str, Any]) -> Iterator[Row]:
    for plane in facts["sizes"]:
        later, first = plane["pass"], plane["first_pass"]
        size = (plane["running"], plane["waiting"], plane["teams"], plane["lanes"])
        counted = (round(later["cpu_ms"]), later["calls"], later["rcu"], later["wcu"])
        of_first = (round(first["cpu_ms"]), first["calls"], first["wcu"])
        yield *size, *counted, *of_first, max(plane["largest_rows_bytes"].values())


def _depths(facts: Mapping[str, Any]) -> Iterator[Row]:
    for depth in facts.get("depths", ()):
        measured = "computed" if depth["computed"] else "measured"
        yield depth["pending"], round(depth["cpu_ms"]), depth["calls"], depth["rcu"], measured


def _minutes(facts: Mapping[str, Any]) -> Iterator[Row]:
    for minute in facts.get("minutes", ()):
        yield (
            minute["running"],
            minute["pools"],
            minute["starts"],
            minute["cpu_ms"],
            minute["calls"],
            minute["rcu"],
        )


def _rings(facts: Mapping[str, Any]) -> Iterator[Row]:
    for pool in facts.get("pools", ()):
        waits = pool["waits_seconds"]
        yield pool["load"]["pools"], pool["rings"], waits["p50"], waits["p99"], waits["longest"]


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
