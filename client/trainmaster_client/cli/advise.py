"""``trainmaster advise``: one job in several shapes, tried on the API, and which one to take."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.text import Text
from trainmaster.core.costs.prices import SPOT_SHARE
from trainmaster.core.request.options import ALTERNATIVES, Alternative

from trainmaster_client.advice.assessments import Assessment, Assessor
from trainmaster_client.advice.measured_work import (
    Run,
    first_measured,
    measured_shapes,
    speed_lines,
    with_speeds,
)
from trainmaster_client.advice.ranking import By, Recommendation, ranked, recommend
from trainmaster_client.advice.shapes import Source, read_shapes
from trainmaster_client.advice.spot_scores import PlacementScore, SpotScores
from trainmaster_client.api import Document, field_problem
from trainmaster_client.cli.command_options import with_options
from trainmaster_client.cli.connection import aws_session, connect
from trainmaster_client.cli.dry_run import end_words
from trainmaster_client.cli.measured_runs import kept_runs, runs_of, runs_of_reports
from trainmaster_client.cli.plan_advice import PlanOptions, advise_plans
from trainmaster_client.cli.screen import JsonFlag, console, print_json, print_lines
from trainmaster_client.cli.submit import NOT_VALID, AsTeam, OptionalRequestFile, parse_request
from trainmaster_client.errors import InvalidArgumentError, MalformedViewError
from trainmaster_client.http.answers import printable
from trainmaster_client.jobs.instants import likely_start


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeOptions:
    """Options of the comparison of shapes."""

    shape: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TYPE=COUNT[:spot][@SUBNET]",
            help="Compare this shape too, as in ml.g5.xlarge=4:spot. May be given several times.",
        ),
    ] = None
    by: Annotated[
        By,
        typer.Option(
            help="What matters: an early start, a low cost, few interruptions, work per dollar as measured."
        ),
    ] = By.START
    measured: Annotated[
        list[str] | None,
        typer.Option(
            metavar="JOB",
            help="A job that trained the same model: its shapes are compared by their speed. Without any,"
            " --by work takes what the stack has measured.",
        ),
    ] = None
    metric: Annotated[
        str,
        typer.Option(help="Metric of these jobs that counts work a second, as in their MetricDefinitions."),
    ] = "train:tok_s"
    bench: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TYPE=COUNT,FILE",
            help="A report of benchmarks.training.bench and its shape, which is compared by speed.",
        ),
    ] = None
    bench_row: Annotated[
        str | None,
        typer.Option(
            metavar="ROW", help="Row of these reports, as in compiled; else the fastest they share."
        ),
    ] = None
    team: AsTeam = None

    def check(self) -> None:
        """Raises InvalidArgumentError for options that contradict each other."""
        if self.bench and self.measured:
            raise InvalidArgumentError(
                "--bench and --measured are of different work, so their speeds cannot be compared.",
                hint="Give one of them.",
            )
        if self.bench_row is not None and not self.bench:
            raise InvalidArgumentError(
                "--bench-row needs a report.", hint="Write --bench ml.g5.xlarge=1,build/bench.json."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """How fast earlier runs were, by a metric that all of them have."""

    metric: str
    runs: Sequence[Run]


def _measured(assessor: Assessor, compared: ShapeOptions, named: Sequence[Run]) -> Measured:
    """Return the runs to compare by: those named, of reports, or for ``--by work`` those of the stack."""
    if compared.bench:
        row = runs_of_reports(compared.bench, compared.bench_row)
        return Measured(metric=row.metric, runs=row.runs)
    if compared.by is By.WORK and not named:
        runs, metric = kept_runs(assessor)
        return Measured(metric=metric, runs=runs)
    return Measured(metric=compared.metric, runs=named)


_SOURCES = {
    Source.REQUEST: "as the request has it",
    Source.TAG: "from the request's tag",
    Source.OPTION: "asked for",
    Source.PROPOSED: "proposed: the same accelerators",
}


@with_options
def advise(
    file: OptionalRequestFile = None,
    *,
    compared: ShapeOptions,
    plan: PlanOptions,
    as_json_: JsonFlag = False,
) -> None:
    """Compare the shapes that a job could run in, or the training plans that AWS sells; nothing is stored."""
    plan.check()
    compared.check()
    if plan.plans:
        if file is not None:
            raise InvalidArgumentError("--plans is about the whole queue.", hint="Leave FILE out.")
        advise_plans(plan, as_json=as_json_)
        return
    if file is None:
        raise InvalidArgumentError(
            "FILE is missing.", hint="Give a CreateTrainingJob request, or --plans for training plans."
        )
    request = parse_request(file.read(), source=file.name)
    extra = [shape for text in compared.shape or () for shape in read_shapes(text, where="--shape")]
    with _progress() as report:
        api = connect(quiet=True)
        named = runs_of(api, compared.measured or (), compared.metric, report=report)
        assessor = Assessor(api, request, SpotScores(aws_session()), report=report, team=compared.team)
        measured = _measured(assessor, compared, named)
        shapes = [*extra, *measured_shapes(measured.runs)]
        order, best, tried = _advice(assessor, shapes, compared.by, measured)
    if as_json_:
        print_json(as_json(order, best, tried))
    else:
        print_lines(lines(order, now=datetime.now(UTC)))
        print_lines(tag_lines(best, tried))
    if best is None:
        raise typer.Exit(NOT_VALID)


def _advice(
    assessor: Assessor, extra: list[Alternative], by: By, measured: Measured
) -> tuple[list[Assessment], Recommendation | None, Document | None]:
    """Return the assessments in order, the best one, and the dry run of the tag that names it."""
    try:
        assessments = with_speeds(assessor.assess(extra), measured.runs, measured.metric)
        order = ranked(assessments, by)
        best = recommend(order, by)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise MalformedViewError(f"{type(error).__name__}: {error}") from error
    if (
        best is None or not best.shapes or assessor.is_elastic
    ):  # its own tag says more than alternatives would
        return order, best, None
    tried = assessor.try_shapes(best.shapes)
    return order, best, tried


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """Show on a terminal, not on standard output, what is tried: each shape takes a second or two."""
    with console(sys.stderr).status("Asking for the pools") as status:
        yield lambda shape: status.update(Text(f"Trying {printable(shape)}"))


def lines(order: Sequence[Assessment], *, now: datetime) -> Iterator[str]:
    first = first_measured(
        sorted(order, key=lambda assessment: list(_SOURCES).index(assessment.candidate.source))
    )
    for number, assessment in enumerate(order, start=1):
        yield f"{number}. {assessment.candidate} ({_SOURCES[assessment.candidate.source]})"
        yield from (f"   {line}" for line in _facts(assessment, now=now))
        yield from (f"   {line}" for line in speed_lines(assessment, first))
    yield "Starts and costs are estimates; in another shape the same work may take another time."
    yield "Costs assume the time such jobs of the team took recently in one of the shapes, else MaxRuntime."


def tag_lines(best: Recommendation | None, tried: Document | None) -> Iterator[str]:
    if best is None:
        yield "None of them is valid: the job would be refused."
        return
    yield f"Recommended: {best.best.candidate}: {best.why}."
    if tried is None:
        return
    if tried.get("valid"):
        yield "The first of these that fits is taken, with the tag (tried, it is valid):"
        yield f"  {ALTERNATIVES}={best.shapes}"
    else:
        yield "Together in one tag they are refused:"
        yield from (f"  {field_problem(violation)}" for violation in tried.get("violations") or ())


def as_json(
    order: Sequence[Assessment], best: Recommendation | None, tried: Document | None
) -> dict[str, Any]:
    is_valid = best is not None and tried is not None and tried.get("valid") is True
    return {
        "shapes": [_shape_json(assessment) for assessment in order],
        "recommended": None if best is None else {"shape": str(best.best.candidate), "why": best.why},
        "tag": {"Key": ALTERNATIVES, "Value": best.shapes} if best is not None and is_valid else None,
    }


def _shape_json(assessment: Assessment) -> dict[str, Any]:
    return {
        "shape": str(assessment.candidate),
        "source": assessment.candidate.source.value,
        **assessment.answer,
        "placement_score": None if assessment.score is None else asdict(assessment.score),
        "network": assessment.network,
        "memory": None if assessment.memory is None else asdict(assessment.memory),
        "sound": assessment.is_sound,
        "measured": None
        if assessment.speed is None
        else {**asdict(assessment.speed), "per_usd": assessment.work_per_usd},
        "expected": {
            "run_hours": assessment.run_hours,
            "interruptions": assessment.expected_interruptions,
            "cost_usd": assessment.expected_cost_usd,
        },
    }


def _facts(assessment: Assessment, *, now: datetime) -> Iterator[str]:
    if not assessment.is_valid:
        yield "not valid, it would be refused:"
        yield from (f"  {field_problem(error)}" for error in assessment.answer.get("violations") or ())
        return
    yield _money(assessment)
    start = assessment.answer.get("estimated_start")
    yield likely_start(start, now=now) if isinstance(start, dict) else "Likely start: unknown"
    yield from end_words(assessment.answer, now=now)
    if victims := assessment.answer.get("would_preempt"):
        yield f"would preempt {', '.join(printable(name) or 'a job of another team' for name in victims)}"
    yield from _spot(assessment)
    if assessment.network:
        yield assessment.network
    if (memory := assessment.memory) is not None:
        fits = "fits" if memory.fits else "does NOT fit"
        yield f"memory: {fits}, {memory.needed_gib} of {memory.gpu_gib} GiB of each GPU (computed)"


def _money(assessment: Assessment) -> str:
    rate, cost, expected = (
        assessment.answer.get("usd_per_hour"),
        assessment.cost_usd,
        assessment.expected_cost_usd,
    )
    if rate is None or cost is None or expected is None:
        return "price unknown: an admin can add it to the policy's prices"
    if not assessment.candidate.is_spot:
        return f"{rate:.2f} USD an hour, about {expected:.2f} for the job"
    return (
        f"{rate:.2f} USD an hour at most, about {expected:.2f} for the job"
        f" ({SPOT_SHARE:.0%} of the price assumed, interruptions included)"
    )


def _spot(assessment: Assessment) -> Iterator[str]:
    if not assessment.candidate.is_spot:
        return
    if assessment.score is not None:
        yield _score(assessment.score)
    expected = assessment.expected_interruptions
    if expected is None:
        yield "interruptions: no job of this stack ran on it in the last 30 days"
    else:
        yield f"interruptions: {expected:.3g} expected at the recent rate"
    if not assessment.keeps_checkpoints:
        yield "no CheckpointConfig: an interruption loses all work"


def _score(score: PlacementScore) -> str:
    if score.score is None:
        return f"spot placement score: not known: {printable(score.unknown)}"
    return (
        f"spot placement score: {score.score} of 10 in {score.where} (for one type always low: compare only)"
    )
