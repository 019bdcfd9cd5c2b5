"""Train with three libraries' own loops, preempt each in five ways, compare its losses with undisturbed runs.

An urgent job takes the instances of the scripts, they resume and end (``make demo-scripts``).
"""

import io
import sys
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from rich.table import Table
from trainmaster_client.cli.training_code import preemptible_files
from trainmaster_client.launcher import LAUNCHER
from trainmaster_client.report import Report

from demos.programs import gated
from demos.programs.gated import GATE_VARIABLE, PROGRAM_VARIABLE, WAITS
from demos.stage.command import Telling, run
from demos.stage.directions import Hold
from demos.stage.evidence import Document
from demos.stage.job_requests import INSTANCE_TYPE, Job
from demos.stage.printed import printed_in, refusal_in
from demos.stage.processes import ROOT, Program
from demos.stage.resumed import (
    check_close_losses,
    check_evaluations,
    check_refused,
    check_resumed,
    check_same_losses,
    check_samples,
    differences,
    steps_lost,
)
from demos.stage.screen import table
from demos.stage.twin_stage import FINAL, Stage, opened_stage

OTHER_TYPE = "ml.m5.2xlarge"
"""Stays free of urgent jobs: a job that may run on one instance of it resumes there."""
HOSTS = 2
"""Hosts of the jobs that resume on another number of ranks, on one host."""
SAMPLES = 64
"""Samples in the data of the libraries' programs."""
EVALUATE_EVERY = 6
STOPPED_IN = 2 * EVALUATE_EVERY
"""The step in which the libraries' programs are stopped."""
_GATED = Path(gated.__file__)
_SETTINGS = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
_OWN = {"STEPS": str(3 * EVALUATE_EVERY), "GLOBAL_BATCH": "4", "DROPOUT": "0.1"}
_ON_RANKS = _OWN | {"GLOBAL_BATCH": "8", "DROPOUT": "0"}
"""Settings of cases on several ranks. Each rank draws dropout masks of its own; if there are none, losses
differ by the order of summation alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    name: str
    title: str
    file: str
    """Its script in docs/training/scripts.md, and the one in ``programs`` that plays the other cases."""


LIBRARIES = (
    Library(name="hf", title="HF Trainer", file="hf_trainer.py"),
    Library(name="lightning", title="Lightning", file="lightning_trainer.py"),
    Library(name="accelerate", title="Accelerate", file="accelerate_loop.py"),
)
_INSTANCES = HOSTS * len(LIBRARIES)
_CAPACITY = {INSTANCE_TYPE: _INSTANCES, OTHER_TYPE: len(LIBRARIES)}
_POLICY = {"version": 1, "pools": [{"name": "demo", "capacity": _CAPACITY}]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One way in which the script of each library is stopped and resumed."""

    name: str
    title: str
    settings: dict[str, str]
    gate: int = STOPPED_IN - 1
    """Number of calls of ``gated.py`` that return before the stop."""
    is_example: bool = False
    """True if the scripts are those of docs/training/scripts.md, which know nothing of cases."""
    hosts: int = 1
    refused_by: frozenset[str] = field(default_factory=frozenset)
    """Libraries whose adapter refuses to resume on one host."""

    @property
    def steps(self) -> int:
        return int(self.settings["STEPS"])


_STREAM, _EVALUATES = {"STREAM": "1"}, {"EVALUATE_EVERY": str(EVALUATE_EVERY)}
CASES = (
    # 32 samples: 4 are in a step, and the libraries read some batches ahead.
    Case(name="step", title="in a step", settings={"STEPS": "100"}, gate=32, is_example=True),
    Case(name="evaluation", title="on an evaluation step", settings=_OWN | _EVALUATES),
    Case(name="ranks", title="from 2 ranks to 1", settings=_ON_RANKS, hosts=HOSTS),
    Case(name="stream", title="on a stream", settings=_OWN | _STREAM),
    Case(
        name="stream-ranks",
        title="on a stream, 2 ranks to 1",
        settings=_ON_RANKS | _STREAM,
        hosts=HOSTS,
        refused_by=frozenset({"lightning"}),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """The script of a library in a case."""

    library: Library
    case: Case

    @property
    def name(self) -> str:
        return f"{self.library.name}-{self.case.name}"

    @property
    def job(self) -> str:
        return f"script-{self.name}"

    @property
    def path(self) -> Path:
        folder = "docs/examples/training" if self.case.is_example else "demos/programs"
        return ROOT / folder / self.library.file


def tell(telling: Telling) -> int:
    scripts: list[Document] = telling.report.facts.setdefault("scripts", [])
    with opened_stage(telling, _POLICY, pool=f"a pool of {_INSTANCES} instances, and larger ones") as stage:
        for case in CASES:
            for script, facts in _play_case(stage, case):
                scripts.append(facts)
                check_case(telling.report, script, facts)
    telling.screen.console.print("", cases_table(scripts), sep="\n")
    for sentence in refusals(scripts):
        telling.screen.say(sentence)
    return telling.finish()


def _play_case(stage: Stage, case: Case) -> Iterator[tuple[Script, Document]]:
    """Play one case with all libraries at once, and yield the facts of each."""
    scripts = [Script(library=library, case=case) for library in LIBRARIES]
    with ExitStack() as until_the_end:
        alone = [until_the_end.enter_context(undisturbed(script, stage.folder)) for script in scripts]
        _play(stage, case, scripts)
        made = [_facts(stage, script) for script in scripts]
        stage.wait_for("the undisturbed runs are over", *alone)
    for script, facts, program in zip(scripts, made, alone, strict=True):
        printed = printed_in(program.lines())
        facts |= {"undisturbed": printed["losses"], "undisturbed_evaluations": printed["evaluations"]}
        yield script, facts


def _play(stage: Stage, case: Case, scripts: Sequence[Script]) -> None:
    names = [script.job for script in scripts]
    refused = [script.job for script in scripts if script.library.name in case.refused_by]
    holds = [Hold(stage.folder, name) for name in names]
    stage.names.clear()
    stage.guard_training(names, may_fail=refused)
    stage.screen.say(f"\nStopped {case.title}, of {case.steps} steps:")
    others = (
        [stage.occupy(f"others-{case.name}", len(scripts), instance_type=OTHER_TYPE)]
        if case.hosts > 1
        else []
    )
    for script, hold in zip(scripts, holds, strict=True):
        stage.screen.say(f"  {script.job}: {script.library.title}")
        hold.at(case.gate)
        stage.submit(_job(stage, script, hold))
    stage.until(
        f"{case.name}: each script waits where the story holds it",
        lambda: all(stage.lines(stage.attempt(name)).count(WAITS) == case.hosts for name in names),
    )
    stage.screen.say("Each waits where the story holds it. Somebody else has something urgent.")
    urgent = stage.occupy(f"urgent-{case.name}", _INSTANCES)
    stage.until(
        f"{case.name}: each script is asked to stop",
        lambda: len(stage.vigil.journal.leaving) == case.hosts * len(scripts),
    )
    for hold in holds:
        hold.release()  # the step in flight can end, and with it the script
    stage.until(f"{case.name}: the urgent job has their instances", lambda: stage.are({"running"}, [urgent]))
    # On one host they resume beside the urgent job, where the others were; else in its place.
    for name in others or [urgent]:
        stage.api.cancel(name)
    stage.until(f"{case.name}: each script has ended", lambda: stage.are(FINAL, names))
    if others:
        stage.api.cancel(urgent)
    stage.until(f"{case.name}: all instances are free", lambda: stage.are(FINAL, [urgent, *others]))


def undisturbed(script: Script, folder: Path) -> Program:
    """Run the same script outside of the twin, where nothing holds it."""
    place = folder / f"{script.name}-undisturbed"
    place.mkdir()
    paths = {"SM_CHECKPOINT_DIR": str(place / "checkpoints"), "SM_MODEL_DIR": str(place / "model")}
    ranks = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={script.case.hosts}"]
    command: list[str | Path] = [sys.executable, *(ranks if script.case.hosts > 1 else []), script.path]
    env = _SETTINGS | script.case.settings | paths | {"PYTHONPATH": str(ROOT)}
    title, log = f"the undisturbed run of {script.name}", folder / f"{script.name}.log"
    return Program(title, command, log=log, env=env, cwd=place)


def _job(stage: Stage, script: Script, gate: Hold) -> Job:
    """Make the job of the script under the launcher; its source directory goes to S3 first."""
    case, bucket, key = script.case, stage.twin.ready["bucket"], f"code/{script.job}.tar.gz"
    stage.client("s3").put_object(Bucket=bucket, Key=key, Body=_archive(script))
    own = {GATE_VARIABLE: str(gate.path), PROGRAM_VARIABLE: script.path.name}
    code = {"sagemaker_program": _GATED.name, "sagemaker_submit_directory": f"s3://{bucket}/{key}"}
    shapes = f"{INSTANCE_TYPE}={case.hosts} {OTHER_TYPE}=1"
    return Job(
        name=script.job,
        command=LAUNCHER,
        instances=case.hosts,
        hyperparameters=code,
        environment=_SETTINGS | case.settings | own,
        tags={"trainmaster:alternatives": shapes} if case.hosts > 1 else {},
    )


def _archive(script: Script) -> bytes:
    """Pack what ``trainmaster training-code DIR --adapters`` puts beside the script, and the script."""
    beside = {name: ROOT / file for name, file in preemptible_files(ROOT).items()}
    own = {path.name: path for path in (script.path, _GATED, ROOT / "training/launch.py")}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, path in (own | beside).items():
            tar.add(path, name)
    return packed.getvalue()


def _facts(stage: Stage, script: Script) -> Document:
    return {
        "script": script.name,
        "title": script.library.title,
        "case": script.case.name,
        "case_title": script.case.title,
        "attempts": stage.attempts(script.job, printed_in),
        "refused": refusal_in(stage.lines(stage.attempt(script.job))),
    }


def check_case(report: Report, script: Script, facts: Document) -> None:
    """Check one case, and add ``steps_lost`` and what differs to its facts."""
    case = script.case
    facts["steps_lost"] = steps_lost(facts["attempts"])
    facts["different"], facts["largest_difference"] = differences(facts)
    facts["not_seen_once"] = None
    if script.library.name in case.refused_by:
        check_refused(report, facts)
        return
    check_resumed(report, facts)
    if case.hosts > 1:
        check_close_losses(report, facts, case.steps)
    else:
        check_same_losses(report, facts, case.steps)
    if not case.is_example:
        check_samples(report, facts, samples=SAMPLES, stopped_in=STOPPED_IN)
    if "EVALUATE_EVERY" in case.settings:
        due = range(EVALUATE_EVERY, case.steps + 1, EVALUATE_EVERY)
        check_evaluations(report, facts, due=due, stopped_in=STOPPED_IN)


def cases_table(scripts: Sequence[Document]) -> Table:
    """Make a table with a row for each script; those of one case follow each other."""
    made = table("STOPPED", "LIBRARY", "LOST", "LOSSES THAT DIFFER", "SAMPLES ONCE", gap=2)
    shown = ""
    for script in scripts:
        case = script["case_title"]
        made.add_row("" if case == shown else case, script["title"], *_figures(script))
        shown = case
    return made


def refusals(scripts: Sequence[Document]) -> Iterator[str]:
    """Yield the sentence with which each library refused a case."""
    for script in scripts:
        if script["refused"]:
            yield f"{script['title']}, {script['case_title']}, refuses: {script['refused']}"


def _figures(script: Document) -> list[str]:
    if script["refused"]:
        return ["-", "refused, see below", "-"]
    wrong = script["not_seen_once"]
    once = "-" if wrong is None else f"{wrong} not" if wrong else "all"
    different = f"{script['different']} of {len(script['undisturbed'])}"
    by = f", by {script['largest_difference']:.0e}" if script["different"] else ""
    return [str(script["steps_lost"]), f"{different}{by}", once]


if __name__ == "__main__":
    raise SystemExit(run(tell, __doc__, report="scripts"))
