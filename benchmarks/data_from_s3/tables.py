"""Medians over the rounds, and how they are printed."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from benchmarks.data_from_s3.rounds import CHECKED, DELIVERED, FIRST, OBJECTS, RESUME, SHARDS

Round = Mapping[str, Mapping[str, Mapping[str, Any]]]
_CASES = (FIRST, RESUME, CHECKED, DELIVERED, OBJECTS, SHARDS)


def medians(rounds: Sequence[Round]) -> dict[str, dict[str, dict[str, Any]]]:
    """By reader and case: seconds, CPU seconds, bytes that came, requests and bytes of the server."""
    return {
        name: {case: _median([one[name][case] for one in rounds]) for case in _CASES} for name in rounds[0]
    }


def _median(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    last = found[-1]
    requests = last["served"].get("requests", {})
    return {
        "seconds": median(one["wall"] for one in found),
        "cpu_seconds": median(one["cpu"] for one in found),
        "bytes": last["bytes"],
        "pieces": last["pieces"],
        "requests": sum(requests.values()),
        "served_bytes": last["served"].get("bytes", 0),
    }


def ratio(rounds: Sequence[Round], case: str, reader: str, other: str, *, of: str | None = None) -> float:
    """CPU seconds of the other over those of the reader, in the same round; above 1: the reader takes less.

    ``of``: another case for the other.
    """
    return float(median(one[other][of or case]["cpu"] / one[reader][case]["cpu"] for one in rounds))


def shown(found: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> list[str]:
    head = "".join(one.rjust(13) for one in ("MB/CPU s", "unchecked", "MB/s"))
    lines = ["", "Large shards, all bytes, a CRC-32 of each piece".ljust(48) + head]
    for name, cases in found.items():
        checked, delivered = cases[CHECKED], cases[DELIVERED]
        figures = (
            checked["bytes"] / 1e6 / checked["cpu_seconds"],
            delivered["bytes"] / 1e6 / delivered["cpu_seconds"],
            checked["bytes"] / 1e6 / checked["seconds"],
        )
        lines.append("  " + name.ljust(46) + "".join(f"{one:13,.0f}" for one in figures))
    for case, title in (
        (FIRST, "First batch of a process"),
        (RESUME, "First batch after a resume, half-way"),
    ):
        head = "".join(one.rjust(13) for one in ("seconds", "requests", "MB fetched"))
        lines += ["", title.ljust(48) + head]
        for name, cases in found.items():
            one = cases[case]
            told = f"{one['seconds']:13.3f}{one['requests']:13}{one['served_bytes'] / 1e6:13,.1f}"
            lines.append("  " + name.ljust(46) + told)
    return [*lines, *_small(found)]


def _small(found: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> list[str]:
    head = "".join(one.rjust(13) for one in ("CPU us", "us", "shards CPU us", "us"))
    lines = ["", "A small sample: as an object; in shards".ljust(48) + head]
    for name, cases in found.items():
        figures = [
            1e6 * cases[case][kind] / cases[case]["pieces"]
            for case in (OBJECTS, SHARDS)
            for kind in ("cpu_seconds", "seconds")
        ]
        lines.append("  " + name.ljust(46) + "".join(f"{one:13,.0f}" for one in figures))
    return lines
