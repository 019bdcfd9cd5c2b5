"""The scene of each case: scripts train, an urgent job takes their instances, they resume and end."""

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from demos.stage.command import Telling
from demos.stage.evidence import Document, log_lines
from demos.stage.patience import ProgramEndedError
from demos.stage.job_requests import INSTANCE_TYPE, urgent_request
from demos.stage.screen import Screen
from demos.scripts.checks import check_case
from demos.scripts.gated import WAITS
from demos.scripts.jobs import (
    CASES,
    HOSTS,
    LIBRARIES,
    OTHER_TYPE,
    Case,
    Script,
    log_of,
    script_request,
    undisturbed,
)
from demos.scripts.printed import printed_in, refusal_in
from demos.scripts.table import cases_table, refusals
from demos.stage.twin_stage import FINAL, Hold, Stage, opened_twin
from local.twin_process import TwinProcess, end

_INSTANCES = HOSTS * len(LIBRARIES)
_POLICY = {
    "version": 1,
    "pools": [{"name": "demo", "capacity": {INSTANCE_TYPE: _INSTANCES, OTHER_TYPE: len(LIBRARIES)}}],
}

Processes = Sequence[tuple[Script, "subprocess.Popen[bytes]"]]
"""The undisturbed run of each script."""


def tell(telling: Telling) -> int:
    """Run the demo, and return the exit code."""
    report, screen = telling.report, telling.screen
    report.facts["scripts"] = []
    with tempfile.TemporaryDirectory(prefix="trainmaster-scripts-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        with opened_twin(folder, policy=_POLICY) as twin:
            os.environ.update(twin.environment())
            screen.say(
                f"The twin is up: one pool with {_INSTANCES} instances, and {len(LIBRARIES)} larger ones."
            )
            for case in CASES:
                for script, facts in _play_case(case, twin, screen, folder):
                    report.facts["scripts"].append(facts)
                    check_case(report, script, facts)
    screen.console.print()
    screen.console.print(cases_table(report.facts["scripts"]))
    for sentence in refusals(report.facts["scripts"]):
        screen.say(sentence)
    screen.console.print()
    return telling.finish()


def _play_case(case: Case, twin: TwinProcess, screen: Screen, folder: Path) -> list[tuple[Script, Document]]:
    """Play one case with all libraries at once, and return the facts of each."""
    scripts = [Script(library=library, case=case) for library in LIBRARIES]
    with _undisturbed(scripts, folder) as alone:
        scene = _Scene(Stage(twin, screen), folder, scripts)
        scene.play()
        facts = [scene.facts(script) for script in scripts]
        scene.wait_for(alone)
    for script, found in zip(scripts, facts, strict=True):
        printed = printed_in(log_of(script, folder).read_text(encoding="utf-8").splitlines())
        found |= {
            "undisturbed": printed["losses"],
            "undisturbed_evaluations": printed["evaluations"],
        }
    return list(zip(scripts, facts, strict=True))


@contextmanager
def _undisturbed(scripts: list[Script], folder: Path) -> Iterator[Processes]:
    """Run each script outside of the twin while the block runs."""
    alone = [(script, undisturbed(script, folder)) for script in scripts]
    try:
        yield alone
    finally:
        for _, process in alone:
            end(process)


class _Scene:
    def __init__(self, stage: Stage, folder: Path, scripts: list[Script]) -> None:
        self._stage, self._folder, self._scripts = stage, folder, scripts
        self._case = scripts[0].case
        self._labels = [script.job for script in scripts]

    def play(self) -> None:
        stage, case = self._stage, self._case
        stage.screen.say(f"\nStopped {case.title}, of {case.steps} steps:")
        others = [self._submit_holder("others", OTHER_TYPE, len(LIBRARIES))] if case.hosts > 1 else []
        holds = [self._submit(script) for script in self._scripts]
        self._until(f"{case.name}: each script waits where the story holds it", self._are_held)
        stage.screen.say("Each waits where the story holds it. Somebody else has something urgent.")
        urgent = self._submit_holder("urgent", INSTANCE_TYPE, _INSTANCES)
        containers = case.hosts * len(self._scripts)
        self._until(
            f"{case.name}: each script is asked to stop",
            lambda: len(stage.vigil.journal.leaving) == containers,
        )
        for hold in holds:
            hold.release()  # the step in flight can end, and with it the script
        self._until(
            f"{case.name}: the urgent job has their instances", lambda: stage.are({"running"}, [urgent])
        )
        # On one host they resume beside the urgent job, where the others were; else in its place.
        for holder in others or [urgent]:
            stage.api.cancel(holder)
        self._until(f"{case.name}: each script has ended", lambda: stage.are(FINAL, self._labels))
        if others:
            stage.api.cancel(urgent)
        self._until(f"{case.name}: all instances are free", lambda: stage.are(FINAL, [urgent, *others]))

    def _submit_holder(self, name: str, instance_type: str, instances: int) -> str:
        """Submit a job that keeps its instances until it is cancelled, and return its name."""
        stage, job = self._stage, f"{name}-{self._case.name}"
        wanted = urgent_request(job, stage.twin, instances=instances)
        wanted["ResourceConfig"]["InstanceType"] = instance_type
        stage.api.add_job(wanted)
        stage.name(job, job)
        return job

    def wait_for(self, alone: Processes) -> None:
        """Wait for the undisturbed runs.

        Raises:
            ProgramEndedError: One failed.
        """
        logs = [log_of(script, self._folder) for script, _ in alone]
        vigil = self._stage.vigil
        vigil.evidence.append(lambda: [log.stat().st_size for log in logs])
        vigil.until(
            "the undisturbed runs are over",
            lambda: all(process.poll() is not None for _, process in alone),
        )
        for script, process in alone:
            if process.returncode:
                raise ProgramEndedError(
                    program=f"the undisturbed run of {script.name}",
                    exit_code=process.returncode,
                    printed=log_of(script, self._folder).read_text(encoding="utf-8", errors="replace"),
                )

    def facts(self, script: Script) -> Document:
        """Collect what happened to one script: each attempt, and how its containers ended."""
        attempts, lines = [], list[str]()
        for attempt in self._stage.api.job(script.job)["attempts"]:
            name = attempt["training_job_name"]
            lines = log_lines(self._stage.logs, name)
            own = {"training_job_name": name, "status": attempt["status"], "exit_code": self._exit_code(name)}
            attempts.append(own | printed_in(lines))
        return {
            "script": script.name,
            "title": script.library.title,
            "case": script.case.name,
            "case_title": script.case.title,
            "attempts": attempts,
            "refused": refusal_in(lines),
        }

    def _submit(self, script: Script) -> Hold:
        hold, stage = Hold(self._folder, script.job), self._stage
        stage.screen.say(f"  {script.job}: {script.library.title}")
        hold.at(script.case.gate)
        stage.api.add_job(script_request(script, stage.twin, hold.path))
        stage.name(script.job, script.job)
        return hold

    def _exit_code(self, training_job_name: str) -> int | list[int] | None:
        """Return the exit code of all hosts, or a list if they ended in different ways."""
        codes = {
            record["exit_code"]
            for record in self._stage.twin.records()
            if record["kind"] == "process"
            and record["event"] == "exit"
            and record["training_job"] == training_job_name
        }
        return next(iter(codes), None) if len(codes) <= 1 else sorted(codes)

    def _are_held(self) -> bool:
        return all(self._held_ranks(script) == script.case.hosts for script in self._scripts)

    def _held_ranks(self, script: Script) -> int:
        name = self._stage.attempt(script.job)
        return log_lines(self._stage.logs, name).count(WAITS) if name else 0

    def _until(self, what: str, holds: Callable[[], object]) -> None:
        """Wait for a state. Raises ProgramEndedError if a script has failed that was not to be refused."""

        def looked() -> object:
            for script in self._scripts:
                may_fail = script.library.name in self._case.refused_by
                ended_early = {"stopped"} if may_fail else {"failed", "stopped"}
                if self._stage.state(script.job) in ended_early:
                    lines = log_lines(self._stage.logs, self._stage.attempt(script.job))
                    raise ProgramEndedError(program=script.job, exit_code=None, printed="\n".join(lines))
            return holds()

        self._stage.until(what, looked)
