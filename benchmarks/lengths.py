"""Shows how well the run times of a trace are predicted: by the product and by simple rules.

Nothing is replayed: each job begins when it is submitted. Each window begins with nothing learned.
"""

import argparse
from dataclasses import asdict
from pathlib import Path

from trainmaster_client.errors import TrainmasterClientError
from trainmaster_client.report import Report

from benchmarks.replay import made_up_account
from benchmarks.replay.jobs import TRACE_FILES, jobs_of, read_trace
from benchmarks.replay.length_predictions import PREDICTORS, LengthFigures, asked, figures
from benchmarks.replay.requested_times import Requests, requests_of
from benchmarks.replay.windows import Window, parts

ROOT = Path(__file__).resolve().parents[1]
ENOUGH_QUESTIONS = 300
"""Questions from which on the coverage of the p90 is checked."""
COVERAGE = (85.0, 95.0)
"""Percent of the jobs that may train no longer than their p90."""


def main(argv: list[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    try:
        rows = read_trace(arguments.trace) if arguments.trace else made_up_account.rows()
        windows = parts(rows, arguments.windows)
    except TrainmasterClientError as error:
        raise SystemExit(str(error)) from error
    report = Report("lengths")
    print(f"{'window':7}{'requests':9}{'predictor':16}{'asked':>6}{'pairs':>7}{'|log2|':>8}", end="")
    print(f"{'p90 loss':>10}{'<= p50':>8}{'<= p90':>8}")
    report.facts["lengths"] = []
    for window in windows:
        for requests in arguments.requests:
            _window(report, window, requests, seed=arguments.seed)
    asked_jobs = sum(row["questions"] for row in report.facts["lengths"])
    report.check("questions", expected="at least one", actual=asked_jobs, ok=asked_jobs > 0)
    return report.finish(arguments.json)


def parser() -> argparse.ArgumentParser:
    flags = argparse.ArgumentParser(prog="python -m benchmarks.lengths", description=__doc__)
    flags.add_argument("--trace", type=Path, metavar="FILE", help=f"{TRACE_FILES}; without: made up")
    flags.add_argument("--windows", type=int, default=1, metavar="N", help="equal parts of the trace")
    flags.add_argument("--seed", type=int, default=1, metavar="N", help="draws the requested times")
    flags.add_argument(
        "--requests",
        metavar="HOW,HOW",
        type=requests_of,
        default=tuple(Requests),
        help="requested run times: drawn, or a day for all; default both",
    )
    flags.add_argument("--json", type=Path, default=ROOT / "build" / "lengths.json", metavar="PATH")
    return flags


def _window(report: Report, window: Window, requests: Requests, *, seed: int) -> None:
    jobs = jobs_of(window.rows, seed=seed, requests=requests)
    for label, predictor in PREDICTORS.items():
        answers = asked(jobs, predictor())
        if not answers:
            continue
        measured = figures(answers)
        where = {"window": window.number, "requests": requests.value, "predictor": label}
        report.facts["lengths"].append(where | asdict(measured))
        print(_line(window.number, requests, label, measured))
        if label == "learned" and measured.questions >= ENOUGH_QUESTIONS:
            least, most = COVERAGE
            percent = round(measured.below_p90_percent, 1)
            report.check(
                f"coverage-of-p90-{window.number}-{requests.value}",
                expected=f"{least:g} to {most:g} % of the jobs end by their p90",
                actual=f"{percent:g} %",
                ok=least <= percent <= most,
            )


def _line(window: int, requests: Requests, label: str, measured: LengthFigures) -> str:
    return (
        f"{window:<7}{requests.value:9}{label:16}{measured.questions:6}{measured.pairs_percent:6.1f}%"
        f"{measured.log2:8.2f}{measured.pinball_p90_s:8.0f} s{measured.below_p50_percent:7.1f}%"
        f"{measured.below_p90_percent:7.1f}%"
    )


if __name__ == "__main__":
    raise SystemExit(main())
