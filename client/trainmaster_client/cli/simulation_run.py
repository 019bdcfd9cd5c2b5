"""A simulation from its options to its tables, page and report."""

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from trainmaster.core.costs.prices import PriceTable
from trainmaster.core.policy import Policy

from trainmaster_client.cli import simulation_tables as tables
from trainmaster_client.cli.connection import CommandApi, connect
from trainmaster_client.cli.exit_codes import ExitCode
from trainmaster_client.cli.screen import console, print_lines
from trainmaster_client.cli.simulation_input import (
    Without,
    check_source,
    histories,
    policies_of,
    read_capacity,
    read_seeds,
    read_team_map,
    read_without,
    with_stack,
)
from trainmaster_client.cli.simulation_options import TRACE_LOAD, OutputOptions, PolicyOptions, SourceOptions
from trainmaster_client.cli.submit import parse_request
from trainmaster_client.cli.written_files import unwritable, write_text
from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.report import Report
from trainmaster_client.simulate.comparison.comparisons import Comparison, compare
from trainmaster_client.simulate.comparison.seeds import spreads
from trainmaster_client.simulate.comparison.start_hours import StartHours, start_hours
from trainmaster_client.simulate.engine.assumptions import ASSUMED, NOT_MODELLED
from trainmaster_client.simulate.engine.past_jobs import History
from trainmaster_client.simulate.engine.recorded import RECORDED
from trainmaster_client.simulate.engine.replays import PLAIN_QUEUE
from trainmaster_client.simulate.engine.variations import with_capacity, without_rule
from trainmaster_client.simulate.io.asked_job import asked_job
from trainmaster_client.simulate.io.bought_plans import WrittenPlan, read_plans
from trainmaster_client.simulate.io.columns import (
    ColumnPlan,
    columns_with_plans,
    guests,
    replays_of,
    sized,
    with_teams,
)
from trainmaster_client.simulate.io.simulation_report import Circumstances, add_checks, add_facts
from trainmaster_client.simulate.io.start_questions import ask
from trainmaster_client.simulate.page.document import PageFacts, page
from trainmaster_client.simulate.page.starts import starts_section

Share = Callable[[float], None]


def run(source: SourceOptions, compared: PolicyOptions, output: OutputOptions) -> None:
    """Run a simulation. Raises InvalidArgumentError for every option that is not valid."""
    report = Report("simulate")
    cpu = os.times()
    check_source(source)
    api = connect(quiet=True) if source.from_account is not None else None
    study = Study.of(source, compared, api)
    with _bar() as progress:
        results = list(study.results(progress))
        starts = list(_asked(output.ask, results[0], progress)) if output.ask is not None else []
    comparisons = [result.comparison for result in results]
    circumstances = Circumstances(
        lead=results[0].lead,
        assumed=ASSUMED,
        not_modelled=NOT_MODELLED,
        prices=study.prices,
        seeds=study.seeds[: len(results)],
    )
    print_lines(_lines(comparisons, circumstances, starts))
    if output.page_file is not None:
        write_text(output.page_file, _page(comparisons, circumstances, starts), option="--html")
    add_facts(report, comparisons, circumstances)
    report.facts["asked"] = [_asked_fact(start) for start in starts]
    add_checks(report, comparisons, circumstances)
    report.facts["cpu_s"] = _cpu_seconds(cpu)
    _finish(report, output)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of one seed."""

    history: History
    plans: Sequence[ColumnPlan]
    comparison: Comparison
    lead: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """The comparison to make, before the first job is read."""

    source: SourceOptions
    compared: PolicyOptions
    api: CommandApi | None
    policies: Sequence[tuple[str, Policy]]
    """The one in force first, where there is one."""
    seeds: Sequence[int]
    team_names: Mapping[str, str]
    counts: Mapping[str, int]
    """Other capacity, by instance type; empty: as the policies have it."""
    without: Without | None
    plans: Sequence[WrittenPlan]

    @classmethod
    def of(cls, source: SourceOptions, compared: PolicyOptions, api: CommandApi | None) -> "Study":
        """Raises InvalidArgumentError for every option that is not valid."""
        seeds, team_names = read_seeds(source.seeds), read_team_map(source.team_map)
        counts, without = read_capacity(compared.capacity), read_without(compared.without)
        plans, files = read_plans(compared.plan), policies_of(compared.policy)
        policies = files if api is None else with_stack(api, files)
        if not policies:
            raise InvalidArgumentError("--policy is missing.", hint="Give one: --policy policy.yaml.")
        return cls(
            source=source,
            compared=compared,
            api=api,
            policies=policies,
            seeds=seeds,
            team_names=team_names,
            counts=counts,
            without=without,
            plans=plans,
        )

    @property
    def prices(self) -> PriceTable:
        """Return the prices of the last policy, for all columns alike."""
        return PriceTable(overrides=self.policies[-1][1].prices)

    def results(self, progress: Share) -> Iterator[Result]:
        runs = len(self.seeds) if self.source.trace is not None else 1
        for number, read in enumerate(histories(self.source, self.policies[0][1], self.api, self.seeds)):
            history = with_teams(read, self.team_names)
            plans, lead = self._plans(history)
            replays = replays_of(history, plans, progress=_part(progress, number, runs))
            comparison = compare(history, replays, prices=self.prices)
            yield Result(history=history, plans=plans, comparison=comparison, lead=lead)

    def _plans(self, history: History) -> tuple[list[ColumnPlan], list[str]]:
        policies, lead = self._sized(history)
        plans = [ColumnPlan(label=label, policy=policy) for label, policy in policies]
        added, sentences = columns_with_plans(*policies[-1], self.plans, history)
        plans += [*self._variants(*policies[-1]), *added]
        lead += sentences
        if history.is_recorded:
            plans.insert(0, ColumnPlan(label=RECORDED, policy=policies[0][1], is_recorded=True))
        if len(plans) == 1:
            plans.insert(0, ColumnPlan(label=PLAIN_QUEUE, policy=policies[0][1], is_plain=True))
        for label, policy in policies:
            if strangers := guests(history, policy):
                lead.append(tables.guests_line(label, strangers))
        return plans, lead

    def _sized(self, history: History) -> tuple[list[tuple[str, Policy]], list[str]]:
        """Return the policies with the capacities that are replayed, and sentences on them."""
        is_trace = self.source.trace is not None
        load = self.compared.load
        if load is None and is_trace and not self.compared.capacity_as_written:
            load = TRACE_LOAD
        counts = self.counts if is_trace else {}
        policies, lead = [], []
        for label, policy in self.policies:
            larger, sentences = (policy, ()) if load is None else sized(history, policy, load=load)
            larger = with_capacity(larger, counts) if counts else larger
            policies.append((label, larger))
            lead += [f"{label}: {sentence}" for sentence in sentences]
            lead.append(f"{label}: {tables.capacity_text(larger)}.")
        return policies, lead

    def _variants(self, label: str, policy: Policy) -> Iterator[ColumnPlan]:
        if self.counts and self.source.trace is None:
            text = ", ".join(f"{name}={count}" for name, count in self.counts.items())
            yield ColumnPlan(label=f"{label}, {text}", policy=with_capacity(policy, self.counts))
        if self.without is not None:
            teams, rules = self.without.teams, self.without.rules
            text = ", ".join((*teams, *rules))
            other = reduce(without_rule, rules, policy)
            yield ColumnPlan(label=f"{label} without {text}", policy=other, without_teams=teams)


def _asked(file: Path, result: Result, progress: Share) -> Iterator[StartHours]:
    job = asked_job(parse_request(file.read_bytes(), source=str(file)), result.history, source=str(file))
    for plan in result.plans:
        if not plan.is_plain and not plan.is_recorded:
            replayed = ask(result.history, plan.policy, job, progress=progress)
            answers = ((answer.submitted_at, answer.waits) for answer in replayed.answers)
            yield start_hours(answers, label=plan.label, refused=replayed.refused)


def _lines(
    comparisons: Sequence[Comparison], circumstances: Circumstances, starts: Sequence[StartHours]
) -> Iterator[str]:
    first = comparisons[0]
    yield from tables.wrapped([f"{first.history.source}: {len(first.history.jobs):,} jobs"])
    yield from tables.wrapped(circumstances.lead)
    yield ""
    if len(comparisons) > 1:
        yield from tables.wrapped(
            [f"Mean and standard deviation of seeds {', '.join(map(str, circumstances.seeds))}:"]
        )
        yield from tables.spread_lines(spreads(comparisons), first.columns)
        yield ""
        yield from tables.wrapped([f"Of seed {circumstances.seeds[0]}:"])
    yield from tables.comparison_lines(first)
    yield ""
    for column in first.columns:
        if any(share is not None for share in column.use_by_hour):
            yield from tables.hour_lines(column)
            yield ""
    for start in starts:
        yield from tables.start_lines(start)
        yield ""
    yield "What it cannot know:"
    yield from tables.wrapped(
        f"- {sentence}" for sentence in (*first.history.not_known, *ASSUMED, *NOT_MODELLED)
    )


def _page(
    comparisons: Sequence[Comparison], circumstances: Circumstances, starts: Sequence[StartHours]
) -> str:
    facts = PageFacts(
        command=shlex.join(["trainmaster", *sys.argv[1:]]),
        lead=circumstances.lead,
        assumed=circumstances.assumed,
        not_modelled=circumstances.not_modelled,
        seeds=circumstances.seeds,
        spread=list(spreads(comparisons)) if len(comparisons) > 1 else [],
        extra=[starts_section(starts)] if starts else [],
    )
    return page(comparisons[0], facts)


def _asked_fact(start: StartHours) -> dict[str, object]:
    return {
        "policy": start.label,
        "refused": start.refused,
        "submissions": start.asked,
        "never_started": start.never,
        "waits_s": list(start.waits),
    }


def _finish(report: Report, output: OutputOptions) -> None:
    print_lines(["", *(check.line() for check in report.checks if check.ok is False)])
    if output.report_file is not None:
        try:
            report.write(output.report_file)
        except OSError as error:
            raise unwritable(output.report_file, error, option="--json") from error
        print_lines([f"simulate: {'ok' if report.ok else 'NOT ok'}, report in {output.report_file}"])
    if output.page_file is not None:
        print_lines([f"Open {output.page_file} in a browser."])
    if not report.ok:
        raise typer.Exit(ExitCode.REFUSED)


@contextmanager
def _bar() -> Iterator[Share]:
    """Show progress on a terminal, and wipe it off at its end."""
    screen = console(sys.stderr)
    if not screen.is_terminal or screen.is_dumb_terminal:
        yield _silent
        return
    columns = (
        TextColumn("Replaying"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=screen, transient=True) as bar:
        task = bar.add_task("replay", total=1.0)
        yield lambda share: bar.update(task, completed=share)


def _silent(_share: float) -> None:
    """Show no progress: there is no terminal."""


def _part(progress: Share, number: int, parts: int) -> Share:
    return lambda share: progress((number + share) / parts)


def _cpu_seconds(since: os.times_result) -> float:
    """Return the seconds of processor time of this process and those it started."""
    now = os.times()
    return round(sum(now[:4]) - sum(since[:4]), 2)
