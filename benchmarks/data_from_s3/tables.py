"""Medians over the rounds, and how they are printed."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from benchmarks.data_from_s3.rounds import CHECKED, DELIVERED, FIRST, OBJECTS, RESUME, SHARDS

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
    head = "".join(heading.rjust(13) for heading in ("MB/CPU s", "unchecked", "MB/s"))
    lines = ["", "Large shards, all bytes, a CRC-32 of each piece".ljust(48) + head]
    for name, cases in results.items():
        checked, delivered = cases[CHECKED], cases[DELIVERED]
        figures = (
            checked["bytes"] / 1e6 / checked["cpu_seconds"],
            delivered["bytes"] / 1e6 / delivered["cpu_seconds"],
            checked["bytes"] / 1e6 / checked["seconds"],
        )
        lines.append("  " + name.ljust(46) + "".join(f"{figure:13,.0f}" for figure in figures))
    for case, title in (
        (FIRST, "First batch of a process"),
        (RESUME, "First batch after a resume, half-way"),
    ):
        head = "".join(heading.rjust(13) for heading in ("seconds", "requests", "MB fetched"))
        lines += ["", title.ljust(48) + head]
        for name, cases in results.items():
            typical = cases[case]
            megabytes = typical["served_bytes"] / 1e6
            figures_text = f"{typical['seconds']:13.3f}{typical['requests']:13}{megabytes:13,.1f}"
            lines.append("  " + name.ljust(46) + figures_text)
    return [*lines, *_small(results)]


def _small(results: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> list[str]:
    head = "".join(heading.rjust(13) for heading in ("CPU us", "us", "shards CPU us", "us"))
    lines = ["", "A small sample: as an object; in shards".ljust(48) + head]
    for name, cases in results.items():
        figures = [
            1e6 * cases[case][kind] / cases[case]["pieces"]
            for case in (OBJECTS, SHARDS)
            for kind in ("cpu_seconds", "seconds")
        ]
        lines.append("  " + name.ljust(46) + "".join(f"{figure:13,.0f}" for figure in figures))
    return lines
