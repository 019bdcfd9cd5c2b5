"""``trainmaster tune``: studies of hyperparameter tuning: shown, resumed and stopped."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated, NoReturn

import typer

from trainmaster_client.cli.connection import aws_session
from trainmaster_client.cli.exit_codes import ExitCode
from trainmaster_client.cli.screen import print_json, print_json_line, print_lines
from trainmaster_client.errors import NotFoundError, Problem
from trainmaster_client.hooks.botocore_events import Where
from trainmaster_client.hooks.training_job_calls import hooks_of
from trainmaster_client.tuning.study import Study, StudyStatus, to_document
from trainmaster_client.tuning.study_runs import StudyPasses, run_until_end
from trainmaster_client.tuning.study_store import StudyPlace
from trainmaster_client.tuning.tuning_requests import TuningPlan, trial_name

Name = Annotated[str, typer.Argument(metavar="NAME", help="Of the tuning job.")]
Output = Annotated[
    str | None,
    typer.Option(metavar="S3PATH", help="S3OutputPath of its trials; needed where none was submitted yet."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the study as it is stored and nothing else.")]

app = typer.Typer(
    help="Show, resume and stop hyperparameter tuning.", no_args_is_help=True, rich_markup_mode=None
)


@app.command()
def attach(name: Name, *, output: Output = None, as_json: AsJson = False) -> None:
    """Resume a study until it has ended, from wherever its last process left it."""
    passes, place = _found(name, output)
    _study(passes, place)
    study = run_until_end(passes, place, tell=lambda study_so_far: _print(study_so_far, as_json=as_json))
    if study is None or study.status is not StudyStatus.COMPLETED:
        raise typer.Exit(ExitCode.REFUSED)


@app.command()
def show(name: Name, *, output: Output = None, as_json: AsJson = False) -> None:
    """The trials of a study, and its best one."""
    study = _study(*_found(name, output))
    if as_json:
        print_json(to_document(study))
        return
    print_lines([line_of(study), *([study.failure] if study.failure else [])])
    print_lines(f"  {line}" for line in trial_lines(study))


@app.command()
def stop(name: Name, *, output: Output = None, as_json: AsJson = False) -> None:
    """Cancel the trials of a study that wait or run, and start no more."""
    passes, place = _found(name, output)
    _study(passes, place)
    passes.stop(place)
    _print(_study(passes, place), as_json=as_json)


def _print(study: Study, *, as_json: bool) -> None:
    if as_json:
        print_json_line(to_document(study))
    else:
        print_lines([line_of(study)])


def line_of(study: Study) -> str:
    """Say in one line how far the study is."""
    plan = TuningPlan.parse(study.request)
    ended = len(study.trials) - len(study.live)
    best = study.best(plan.objective)
    best_so_far = "" if best is None else f"; best {plan.objective.metric} {best.seen.value:g} by {best.name}"
    return (
        f"{plan.name}: {study.status}, {ended} of {plan.most_trials} trials ended, "
        f"{len(study.live)} wait or run{best_so_far}"
    )


def trial_lines(study: Study) -> Iterator[str]:
    for trial in study.trials:
        value = "" if trial.seen.value is None else f" {trial.seen.value:g}"
        parameters = ", ".join(f"{name}={text}" for name, text in sorted(trial.parameters.items()))
        why = f" - {trial.seen.failure.splitlines()[0]}" if trial.seen.failure else ""
        yield f"{trial.name} {trial.seen.status}{value} ({parameters}){why}"


def _found(name: str, output: str | None) -> tuple[StudyPasses, StudyPlace]:
    hooks = hooks_of(aws_session(), api_url=None)
    calls, where = hooks.tuning(), Where(region=hooks.api.region, endpoint_url=None)
    if output is not None:
        return calls.passes(where), StudyPlace.below(output, name)
    place = calls.place(name, where)
    if place is None:
        with suppress(NotFoundError):
            hooks.api.job(trial_name(name, 1))  # says so where the API admits nobody
        _unknown(f"No job of the queue is a trial of {name}")
    return calls.passes(where), place


def _study(passes: StudyPasses, place: StudyPlace) -> Study:
    study = passes.observed(place)
    if study is None:
        _unknown(f"There is no {place.url}")
    return study


def _unknown(detail: str) -> NoReturn:
    hint = "look at the name, or give the S3OutputPath of its trials: --output s3://bucket/prefix"
    raise NotFoundError(Problem(status=404, title="No such tuning job", detail=f"{detail}; {hint}"))
