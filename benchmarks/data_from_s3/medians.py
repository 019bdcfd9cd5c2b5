"""Medians over the rounds, and how they are printed."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from benchmarks.data_from_s3.rounds import CHECKED, DELIVERED, FIRST, OBJECTS, RESUME, SHARDS
from benchmarks.tables import Row, aligned

Round = Mapping[str, Mapping[str, Mapping[str, Any]]]
_CASES = (FIRST, RESUME, CHECKED, DELIVERED, OBJECTS, SHARDS)


def medians(rounds: Sequence[Round]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return by reader and case: seconds, CPU seconds, bytes that came, requests and bytes of the server."""
    return {
        name: {case: _median([measurement[name][case] for measurement in rounds]) for case in _CASES}
        for name in rounds[0]
    }


def _median(measurements: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    last = measurements[-1]
    requests = last["served"].get("requests", {})
    return {
        "seconds": median(measurement["wall"] for measurement in measurements),
        "cpu_seconds": median(measurement["cpu"] for measurement in measurements),
        "bytes": last["bytes"],
        "pieces": last["pieces"],
        "requests": sum(requests.values()),
        "served_bytes": last["served"].get("bytes", 0),
    }


def ratio(rounds: Sequence[Round], case: str, reader: str, other: str, *, of: str | None = None) -> float:
    """Return the other reader's CPU seconds per CPU second of the reader, median of the rounds.

    ``of``: another case for the other.
    """
    return float(
        median(
            measurement[other][of or case]["cpu"] / measurement[reader][case]["cpu"] for measurement in rounds
        )
    )


def shown(results: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> list[str]:
    """Return the lines of four tables, a row a reader."""
    head = ("Large shards, all bytes, a CRC-32 of each piece", "MB/CPU s", "unchecked", "MB/s")
    lines = _table(head, {name: _large(cases) for name, cases in results.items()})
    for case, title in (
        (FIRST, "First batch of a process"),
        (RESUME, "First batch after a resume, half-way"),
    ):
        rows = {name: _first_batch(cases[case]) for name, cases in results.items()}
        lines += _table((title, "seconds", "requests", "MB fetched"), rows)
    head_of_small = ("A small sample: as an object; in shards", "CPU us", "us", "shards CPU us", "us")
    return lines + _table(head_of_small, {name: _small(cases) for name, cases in results.items()})


def _table(head: Row, rows: Mapping[str, Row]) -> list[str]:
    return ["", *aligned([head, *((name, *row) for name, row in rows.items())], named=True)]


def _large(cases: Mapping[str, Mapping[str, Any]]) -> Row:
    checked, delivered = cases[CHECKED], cases[DELIVERED]
    seconds = (checked["cpu_seconds"], delivered["cpu_seconds"], checked["seconds"])
    sizes = (checked["bytes"], delivered["bytes"], checked["bytes"])
    return [f"{size / 1e6 / spent:,.0f}" for size, spent in zip(sizes, seconds, strict=True)]


def _first_batch(typical: Mapping[str, Any]) -> Row:
    return f"{typical['seconds']:.3f}", typical["requests"], f"{typical['served_bytes'] / 1e6:,.1f}"


def _small(cases: Mapping[str, Mapping[str, Any]]) -> Row:
    return [
        f"{1e6 * cases[case][kind] / cases[case]['pieces']:,.0f}"
        for case in (OBJECTS, SHARDS)
        for kind in ("cpu_seconds", "seconds")
    ]
