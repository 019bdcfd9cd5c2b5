"""Readers behind a network that is put in: 30 ms before each answer, 100 MB a second of a connection.

Compared are seconds, as waiting is what a network adds, beside requests and what S3 bills for them.
Connections cost nothing to set up here, and all of them together have no bound but this machine's.
"""

import argparse
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from trainmaster_client.report import Report

from benchmarks.data_from_s3 import rounds
from benchmarks.data_from_s3.files import QUICK, TWO_GB, described, written
from benchmarks.data_from_s3.readers import NEAR, OURS, PLAIN, READERS
from benchmarks.data_from_s3.rounds import DELIVERED, OBJECTS, Place
from benchmarks.data_from_s3.sequential import SEQUENTIAL
from benchmarks.tables import aligned

WAIT_MS, MB_A_SECOND = 30.0, 100.0
MIN_LARGE = 0.9
USD_A_REQUEST = {"GET": 0.0004 / 1000, "HEAD": 0.0004 / 1000, "LIST": 0.005 / 1000}
"""S3 Standard in us-east-1, as of November 2026: aws.amazon.com/s3/pricing, requests."""
_BUCKET = "behind-a-network"
_NAMES = tuple(name for name in [*READERS, *SEQUENTIAL] if name not in {NEAR, PLAIN, "boto3 ranges"})
_QUESTIONS: dict[str, dict[str, Any]] = {
    DELIVERED: {"case": "large", "checked": True},
    OBJECTS: {"case": "objects", "checked": True},
}
Rounds = Sequence[Mapping[str, Mapping[str, Mapping[str, Any]]]]


def tell(options: argparse.Namespace) -> int:
    report = Report("benchmarks.data_from_s3.network")
    folder = options.folder / _BUCKET
    amount = QUICK if options.quick else TWO_GB
    written(folder, amount)
    names = [name for name in _NAMES if name in options.readers or name in SEQUENTIAL]
    with rounds.served(options.folder, WAIT_MS, MB_A_SECOND) as endpoint:
        place = Place(bucket=_BUCKET, folder=folder, files=described(folder), endpoint=endpoint)
        runs = [rounds.measured(place, names, _QUESTIONS) for _ in range(options.rounds)]
    report.facts |= {"wait_ms": WAIT_MS, "mb_a_second_of_a_connection": MB_A_SECOND, "rounds": runs}
    report.facts["readers"] = readers = {name: _summed(runs, name) for name in names}
    print("\n".join(_table(readers)))
    wanted = {DELIVERED: amount.large_bytes, OBJECTS: amount.samples * amount.sample_bytes}
    lost = [
        name for name in names for run in runs for case in wanted if run[name][case]["bytes"] != wanted[case]
    ]
    report.check("complete", expected="no reader that lost bytes", actual=sorted(set(lost)), ok=not lost)
    others = [name for name in names if name != OURS]
    for check, case, least in (("large-file", DELIVERED, MIN_LARGE), ("objects-of-1-mb", OBJECTS, 1.0)):
        if options.quick or OURS not in names:
            report.skip(check, reason="too few bytes to compare: run it without --quick")
            continue
        ratios = report.facts.setdefault("ratios", {})[case] = {
            name: _ratio(runs, case, name) for name in others
        }
        best = min(ratios, key=lambda name: ratios[name])
        report.check(
            check,
            expected=f"at least {least} x the speed of the best other reader",
            actual=f"{ratios[best]:.2f} x {best}",
            ok=ratios[best] >= least,
        )
    return report.finish(options.json)


def _ratio(runs: Rounds, case: str, other: str) -> float:
    """Return the other reader's seconds over those of the range reader, median of the rounds."""
    return float(median(run[other][case]["wall"] / run[OURS][case]["wall"] for run in runs))


def _summed(runs: Rounds, name: str) -> dict[str, dict[str, float]]:
    """Return by case: MB a second, CPU seconds, requests and their price for a terabyte."""
    summed = {}
    for case in _QUESTIONS:
        last = runs[-1][name][case]
        requests = last["served"]["requests"]
        usd = sum(number * USD_A_REQUEST[kind] for kind, number in requests.items())
        summed[case] = {
            "mb_per_second": last["bytes"] / 1e6 / median(run[name][case]["wall"] for run in runs),
            "cpu_seconds": median(run[name][case]["cpu"] for run in runs),
            "requests": sum(requests.values()),
            "usd_a_terabyte": usd * 1e12 / last["bytes"],
        }
    return summed


def _table(readers: Mapping[str, Mapping[str, Mapping[str, float]]]) -> list[str]:
    head = (
        "reader",
        "2 GB: MB/s",
        "CPU s",
        "requests",
        "USD/TB",
        "1 MB: MB/s",
        "CPU s",
        "requests",
        "USD/TB",
    )
    rows = [
        (
            name,
            *(
                text
                for case in _QUESTIONS
                for text in (
                    f"{cases[case]['mb_per_second']:,.0f}",
                    f"{cases[case]['cpu_seconds']:.2f}",
                    f"{cases[case]['requests']:,.0f}",
                    f"{cases[case]['usd_a_terabyte']:.3f}",
                )
            ),
        )
        for name, cases in readers.items()
    ]
    return list(aligned([head, *rows], named=True))
