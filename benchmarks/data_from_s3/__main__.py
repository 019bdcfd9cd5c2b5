"""Readers of training data in S3, side by side: the program's ranges, boto3, s3torchconnector, plain files.

A local server speaks as much S3 as they need. Compared are the CPU seconds of the client, because a core that
fetches does not decode; wall seconds are shown, but there is no network here that they could be about. Every
byte gets a CRC-32, by the reader or by the loop around it: training on bytes that nothing has checked is less
work. Each round has all readers in turn, each in a fresh process.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from trainmaster_client.report import Report

from benchmarks.data_from_s3 import elsewhere, network, rounds
from benchmarks.data_from_s3.files import FULL, QUICK, Files, described, written
from benchmarks.data_from_s3.medians import Round, medians, ratio, shown
from benchmarks.data_from_s3.readers import NEAR, OURS, PLAIN, READERS
from benchmarks.data_from_s3.rounds import CHECKED, DELIVERED, OBJECTS, SHARDS, Place
from benchmarks.data_from_s3.worker import PASSES

ROOT = Path(__file__).resolve().parents[2]
MIN_LARGE = 0.9
_BUCKET = "bench"


def main(arguments: Sequence[str]) -> int:
    options = _options(arguments)
    if options.network:
        return network.tell(options)
    amount = QUICK if options.quick else FULL
    if options.write:
        written(options.write, amount)
        print(f"{options.write}: {amount.large_bytes / 1e6:.0f} MB in shards, {amount.samples} small samples")
        return 0
    report = Report("benchmarks.data_from_s3")
    with ExitStack() as stack:
        place = _place(options, stack)
        names = [PLAIN] if options.mount else options.readers
        if place.endpoint:
            report.facts["server"] = rounds.ceiling(place)
        runs = []
        for number in range(options.rounds):
            runs.append(rounds.measured(place, names, rounds.questions_of(place.files)))
            print(f"round {number + 1} of {options.rounds} is measured", flush=True)
    report.facts |= {
        "rounds": runs,
        "medians": medians(runs),
        "published_seconds_a_sample": elsewhere.PUBLISHED,
    }
    _print(report.facts)
    _check(report, runs, place.files, quick=options.quick)
    elsewhere.skip_all(report)
    return report.finish(options.json)


def _place(options: argparse.Namespace, stack: ExitStack) -> Place:
    if options.mount:
        folder = options.mount
    else:
        folder = options.folder / _BUCKET
        written(folder, QUICK if options.quick else FULL)
    local = not (options.mount or options.bucket)
    return Place(
        bucket=options.bucket or _BUCKET,
        folder=folder,
        files=described(folder),
        endpoint=stack.enter_context(rounds.served(options.folder)) if local else None,
    )


def _print(facts: dict[str, Any]) -> None:
    if "server" in facts:
        server = facts["server"]
        print(
            f"the server's ceiling, by a loop that looks at nothing: {server['mb_per_second']:,.0f} MB/s, "
            f"{server['mb_per_cpu_second']:,.0f} MB per CPU second of the client"
        )
    print("\n".join(shown(facts["medians"])))
    published = ", ".join(f"{name} {seconds} s" for name, seconds in elsewhere.PUBLISHED.items())
    print(f"\nA small sample, as published: {published} (on AWS, with its network; not measured here)\n")


def _check(report: Report, runs: Sequence[Round], files: Files, *, quick: bool) -> None:
    amount = files.amount
    incomplete = {
        name
        for readers in runs
        for name, cases in readers.items()
        if {cases[CHECKED]["bytes"], cases[DELIVERED]["bytes"]} != {amount.large_bytes}
        or (cases[OBJECTS]["pieces"], cases[SHARDS]["pieces"]) != (amount.samples, PASSES * amount.samples)
    }
    report.check(
        "complete", expected="no reader that lost bytes", actual=sorted(incomplete), ok=not incomplete
    )
    others = [name for name in runs[0] if name not in {OURS, NEAR, PLAIN}]
    if OURS not in runs[0] or not others:
        return
    large = {name: ratio(runs, CHECKED, OURS, name) for name in others}
    small = {name: ratio(runs, SHARDS, OURS, name) for name in others}
    objects = {name: PASSES * ratio(runs, SHARDS, OURS, name, of=OBJECTS) for name in others}
    report.facts["ratios"] = {
        "large, all checked": large,
        "large, others unchecked": {name: ratio(runs, CHECKED, OURS, name, of=DELIVERED) for name in others},
        "small, in shards": small,
        "small, others by objects": objects,
    }
    near = {name: ratio(runs, CHECKED, NEAR, name) for name in others if NEAR in runs[0]}
    report.facts["ratios"]["large, near, all checked"] = near
    if quick:
        for check in ("large-shards", "small-samples"):
            report.skip(check, reason="too few bytes to compare: run it without --quick")
        return
    _check_large(report, large, near)
    report.check(
        "small-samples",
        expected="the least CPU time a sample, in shards, of all readers of S3",
        actual=f"{_least(small)}; by objects {_least(objects)}",
        ok=min(*small.values(), *objects.values()) >= 1,
    )


def _check_large(report: Report, large: dict[str, float], near: dict[str, float]) -> None:
    report.check(
        "large-shards",
        expected=f"at least {MIN_LARGE} x the best of S3's other readers a core",
        actual=_least(large),
        ok=min(large.values()) >= MIN_LARGE,
    )
    if near:
        report.check(
            "large-shards-near",
            expected="the same of the reader that has fewer pieces ahead",
            actual=_least(near),
            ok=min(near.values()) >= MIN_LARGE,
        )


def _least(ratios: dict[str, float]) -> str:
    name = min(ratios, key=lambda label: ratios[label])
    return f"{ratios[name]:.2f} x {name}"


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.data_from_s3", description=__doc__)
    parser.add_argument("--rounds", type=int, help="of all readers (3; 1 with --quick)")
    parser.add_argument("--readers", nargs="+", choices=list(READERS), default=list(READERS), metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="a few megabytes, once")
    parser.add_argument(
        "--network",
        action="store_true",
        help="a file of 2 GB and objects of 1 MB, behind 30 ms and 100 MB/s a connection",
    )
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "data-from-s3", help="for the files")
    parser.add_argument(
        "--write", type=Path, metavar="FOLDER", help="only write the files there, to upload them"
    )
    parser.add_argument(
        "--mount", type=Path, metavar="FOLDER", help="the files lie here, as a channel or a mount: read them"
    )
    parser.add_argument(
        "--bucket", help="the files lie in this bucket of Amazon S3: read them with all readers"
    )
    parser.add_argument("--json", type=Path, default=ROOT / "build" / "data.json", metavar="PATH")
    options = parser.parse_args(arguments)
    if options.bucket and not (os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")):
        parser.error("--bucket needs a region: set AWS_REGION to the bucket's, e.g. us-east-1")
    options.rounds = options.rounds or (1 if options.quick else 3)
    return options


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
