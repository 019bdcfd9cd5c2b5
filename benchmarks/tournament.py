"""Replays parts of a GPU trace under many deciders, and says how far each is from the best possible.

What is compared, and on which model, is written in docs/benchmarks.md.
"""

import argparse
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from trainmaster_client.errors import InvalidArgumentError, TrainmasterClientError
from trainmaster_client.report import Report
from trainmaster_client.simulate.engine.replay_progress import Progress

from benchmarks.replay import elastic_standings, jobs, made_up_account, standings_tables
from benchmarks.replay.cells import model
from benchmarks.replay.deciders import BASES, DECIDERS, ELASTIC_DECIDERS, Decider, with_policy
from benchmarks.replay.heats import Draw, Field, Outcome, play
from benchmarks.replay.requested_times import Requests, requests_of
from benchmarks.replay.standings import Heat, drawn_heats, heat_figures, standings
from benchmarks.replay.start_estimates import Asked, ask_all, check_all
from benchmarks.replay.tournament_facts import cells, write_events
from benchmarks.replay.tournament_targets import TARGET_LOAD, Kind, check, check_targets
from benchmarks.replay.windows import TraceLine, Window, parts

ROOT = Path(__file__).resolve().parents[1]
LOADS = (0.8, TARGET_LOAD, 1.1)
"""Loads of a full run."""
SEEDS = (1, 2, 3)
"""Seeds of every run but a quick one: the p99 of one seed says little."""
QUICK_JOBS = 1500
"""Jobs of a quick run: the first ones of the middle window."""
COST = (
    "A replay of 1,000 jobs takes about 2 CPU seconds under a policy of the product, 0.1 under a simple "
    "queue, and the bound 0.4. All deciders with three seeds and both kinds of requests take about 50 for "
    "each 1,000 jobs and load."
)


def main(argv: list[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    try:
        trace, kind = _trace(arguments.trace)
        account = made_up_account.bounds if kind is Kind.MADE_UP else None
        field = replace(field_of(trace.rows, arguments), account=account)
    except TrainmasterClientError as error:
        raise SystemExit(str(error)) from error
    report = Report("tournament")
    outcomes = _played(field)
    report.facts |= _facts(arguments, trace, kind, field)
    report.facts["cells"] = [cell for outcome in outcomes for cell in cells(field, outcome)]
    if arguments.events:
        write_events(arguments.events, field, outcomes)
    if field.elastic:
        elastic_heats = elastic_standings.tell(report, field, outcomes, arguments.markdown)
        check(report, outcomes)
        elastic_standings.check(report, elastic_heats)
        return report.finish(arguments.json)
    heats = [_heat(field, outcome) for outcome in outcomes]
    _tell(report, heats, arguments.markdown)
    check(report, outcomes)
    check_targets(report, drawn_heats(heats), kind, days=min(window.days for window in field.windows))
    if arguments.estimates:
        check_all(report, _asked(field, outcomes, arguments.estimates))
    return report.finish(arguments.json)


def parser() -> argparse.ArgumentParser:
    flags = argparse.ArgumentParser(prog="python -m benchmarks.tournament", description=__doc__, epilog=COST)
    flags.add_argument(
        "--trace",
        type=Path,
        metavar="FILE",
        help=f"{jobs.TRACE_FILES}; without: made up",
    )
    flags.add_argument(
        "--windows", type=_at_least_one, default=1, metavar="N", help="equal parts of the trace"
    )
    flags.add_argument("--only", metavar="N,N", type=_numbers, help="of the windows, these; counted from 1")
    flags.add_argument("--deciders", metavar="A,B", type=_labels, help="these, beside the plain queues")
    flags.add_argument(
        "--policy",
        metavar="FILE",
        type=Path,
        action="append",
        default=[],
        help="one more decider: its first pool",
    )
    _add_draws(flags)
    flags.add_argument(
        "--elastic",
        type=_share,
        default=0.0,
        metavar="SHARE",
        help="make this share of the jobs elastic: only deciders of elastic jobs, and drawn requests",
    )
    flags.add_argument(
        "--estimates",
        type=_at_least_one,
        metavar="N",
        help="also ask each policy of the product N times in each window when a job will start",
    )
    flags.add_argument("--json", type=Path, default=ROOT / "build" / "tournament.json", metavar="PATH")
    flags.add_argument("--markdown", type=Path, metavar="PATH", help="the tables as they stand on the page")
    flags.add_argument("--events", type=Path, metavar="PATH", help="one JSON line an attempt")
    return flags


def _add_draws(flags: argparse.ArgumentParser) -> None:
    """Add the options that say how often each part is replayed."""
    flags.add_argument("--loads", metavar="L,L", type=_loads, help="mean demand as a share of the pools")
    flags.add_argument(
        "--seeds", metavar="N,N", type=_numbers, help="which draws, default 1,2,3; of --quick 1"
    )
    flags.add_argument(
        "--requests",
        metavar="HOW,HOW",
        type=requests_of,
        default=tuple(Requests),
        help="requested run times: drawn, or a day for all; default both",
    )
    flags.add_argument("--full", action="store_true", help="three loads and every tie-break")
    flags.add_argument(
        "--quick", action="store_true", help=f"at most {QUICK_JOBS:,} jobs of one window, with one seed"
    )


def _at_least_one(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a valid number; write 1 or more, e.g. 4")
    return number


def _share(text: str) -> float:
    if not 0 < (share := float(text)) <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not a valid share; write more than 0 up to 1, e.g. 0.3")
    return share


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def _loads(text: str) -> tuple[float, ...]:
    loads = tuple(float(part) for part in text.split(","))
    if wrong := [load for load in loads if load <= 0]:
        raise argparse.ArgumentTypeError(f"{wrong[0]:g} is no load: give e.g. 0.95")
    return loads


def _labels(text: str) -> tuple[str, ...]:
    known = [decider.label for decider in DECIDERS]
    labels = tuple(text.split(","))
    if wrong := [label for label in labels if label not in known]:
        raise argparse.ArgumentTypeError(f"{wrong[0]!r} is no decider; there are {', '.join(known)}")
    return labels


# ---- what is replayed


def _trace(path: Path | None) -> tuple[jobs.TraceFile, Kind]:
    if path is None:
        return jobs.TraceFile(rows=made_up_account.rows(), is_openb=False), Kind.MADE_UP
    trace = jobs.read_file(path)
    if trace.is_workload_format:
        return trace, Kind.WORKLOAD
    return trace, Kind.OPENB if trace.is_openb else Kind.OWN


def field_of(trace: Sequence[TraceLine], arguments: argparse.Namespace) -> Field:
    """Raises InvalidArgumentError for windows that are not there."""
    windows = parts(trace, arguments.windows)
    if arguments.quick:
        middle = windows[len(windows) // 2]
        windows = [replace(middle, rows=middle.rows[:QUICK_JOBS])]
    elif arguments.only:
        windows = _chosen(windows, arguments.only)
    loads = arguments.loads or (LOADS if arguments.full else (TARGET_LOAD,))
    seeds = arguments.seeds or (SEEDS[:1] if arguments.quick else SEEDS)
    requested = (Requests.DRAWN,) if arguments.elastic else arguments.requests
    draws = [
        Draw(window=place, load=load, seed=seed, requests=requests)
        for load, place, seed, requests in product(loads, range(len(windows)), seeds, requested)
    ]
    deciders = ELASTIC_DECIDERS if arguments.elastic else _deciders(arguments)
    return Field(windows=windows, draws=draws, deciders=deciders, elastic=arguments.elastic)


def _chosen(windows: Sequence[Window], numbers: Sequence[int]) -> list[Window]:
    if wrong := [number for number in numbers if not 1 <= number <= len(windows)]:
        raise InvalidArgumentError(
            f"There is no window {wrong[0]}: there are {len(windows)}.", hint="Count from 1."
        )
    return [window for window in windows if window.number in numbers]


def _deciders(arguments: argparse.Namespace) -> list[Decider]:
    given = [with_policy(path) for path in arguments.policy]
    if arguments.deciders:
        return [*(decider for decider in DECIDERS if decider.label in {*BASES, *arguments.deciders}), *given]
    return [*(decider for decider in DECIDERS if arguments.full or not decider.only_full), *given]


def _played(field: Field) -> list[Outcome]:
    count = sum(len(field.deciders_of(draw)) for draw in field.draws)
    with _bar(f"Replaying {count} cells") as progress:
        return play(field, progress=progress)


def _asked(field: Field, outcomes: Sequence[Outcome], count: int) -> list[Asked]:
    with _bar("Asking for start estimates") as progress:
        return ask_all(field, outcomes, count=count, progress=progress)


@contextmanager
def _bar(title: str) -> Iterator[Progress]:
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=1.0)
        yield lambda share: bar.update(task, completed=share)


# ---- what came of it


def _heat(field: Field, outcome: Outcome) -> Heat:
    draw = outcome.draw
    return Heat(
        window=field.windows[draw.window].number,
        load=draw.load,
        seed=draw.seed,
        requests=draw.requests,
        figures={run.algorithm: heat_figures(run) for run in outcome.runs},
        bound=outcome.bound.figures,
    )


def _facts(arguments: argparse.Namespace, trace: jobs.TraceFile, kind: Kind, field: Field) -> dict[str, Any]:
    content = arguments.trace.read_bytes() if arguments.trace else None
    windows = [
        {
            "window": window.number,
            "since_s": window.since_s,
            "until_s": window.until_s,
            "jobs": len(window.rows),
        }
        for window in field.windows
    ]
    policies = {
        decider.label: decider.document({"g1": 1}) for decider in field.deciders if decider.is_product
    }
    return {
        "trace": {
            "file": arguments.trace.name if arguments.trace else None,
            "kind": kind.value,
            "sha256": hashlib.sha256(content).hexdigest() if content else None,
            "rows": len(trace.rows),
            "left_out": trace.left_out,
        },
        "model": model(),
        "windows": windows,
        "deciders": {decider.label: decider.title for decider in field.deciders},
        "policies": policies,
    }


def _tell(report: Report, heats: Sequence[Heat], markdown: Path | None) -> None:
    """Print the tables of each load, and write them as Markdown if a file is named."""
    pages: list[str] = []
    report.facts["standings"] = {}
    for load in sorted({played.load for played in heats}):
        mine = [played for played in heats if played.load == load]
        by_decider = standings(mine)
        report.facts["standings"][str(load)] = {
            label: {figure: standing.as_json() for figure, standing in row.items()}
            for label, row in by_decider.items()
        }
        bounds = standings_tables.bounds_line(drawn_heats(mine) or mine)
        head = f"Load {load}: {len(drawn_heats(mine))} replays a decider. {bounds}"
        print("\n\n".join([head, *standings_tables.texts(by_decider)]), end="\n\n")
        pages.append("\n\n".join([head, *standings_tables.pages(by_decider)]))
    if markdown is not None:
        markdown.parent.mkdir(parents=True, exist_ok=True)
        markdown.write_text("\n\n".join(pages) + "\n", encoding="utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
