"""`python -m benchmarks.training.bench --suite h200|cpu`: each case in a process, written as it comes."""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from trainmaster_client.report import Report

from benchmarks.training.bench.cases import (
    UNSETTLED,
    Case,
    Kind,
    Record,
    State,
    batch_for,
    begun,
    largest,
    next_batch,
    out_of_time,
    unsettled,
)
from benchmarks.training.bench.figures import check_suite, line_of, suite_table
from benchmarks.training.bench.suites import SUITES, suite_of
from training.launch import cpu_shares, host_cpus

_SECONDS = 580.0
"""Seconds of a whole run: twenty less than ten minutes, to start and end it."""
_TAIL_CHARACTERS = 600

Run = Callable[[Mapping[str, Any], float], Record]
"""Runs a task with a limit in seconds, and returns its record."""


def main(arguments: Sequence[str]) -> int:
    options = _parser().parse_args(arguments)
    threads = len(cpu_shares(host_cpus(), 1)[0])
    cases = suite_of(options.suite, host_threads=threads)
    try:
        records = read_records(options.resume, options.suite) if options.resume else {}
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    suite = Suite(
        options.suite, cases, options.json, run=in_a_process, records=records, usd_hour=options.usd_hour
    )
    suite.play(seconds=options.seconds)
    return suite.finish()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training.bench", description=__doc__)
    parser.add_argument(
        "--suite",
        choices=SUITES,
        required=True,
        help="h200: one large GPU; cpu: its dry run; "
        "vit-huge: bf16 beside float8 on one GPU; cpu-vit: its dry run; "
        "cpu-precision: what cores, bf16 and compiling gain on this CPU",
    )
    parser.add_argument("--json", type=Path, default=Path("build/bench.json"), help="where the report goes")
    parser.add_argument("--resume", type=Path, help="a report whose results count; only what it lacks is run")
    parser.add_argument(
        "--usd-hour", type=float, help="list price of this machine: samples per USD are shown"
    )
    parser.add_argument("--seconds", type=float, default=_SECONDS, help=f"for all cases ({_SECONDS:g})")
    return parser


def read_records(path: Path, suite: str) -> dict[str, Record]:
    """Read the records of a report. Raises ValueError if it is no report of this suite."""
    try:
        facts = json.loads(path.read_bytes())["facts"]
        records, of = (
            {document["id"]: Record.of_json(document) for document in facts["results"]},
            facts["suite"],
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is no report of benchmarks.training.bench --suite: {error!r}") from error
    if of != suite:
        raise ValueError(f"{path} is of the suite {of}; resume it with --suite {of}")
    return records


@dataclass(eq=False)
class Suite:
    name: str
    cases: Sequence[Case]
    path: Path
    run: Run
    records: dict[str, Record] = field(default_factory=dict)
    clock: Callable[[], float] = time.monotonic
    usd_hour: float | None = None
    """List price of the machine in USD an hour; None: no samples per USD are shown."""

    def play(self, *, seconds: float) -> None:
        """Run what has no outcome yet, as long as the seconds last."""
        deadline = self.clock() + seconds
        for case in unsettled(self.cases, self.records):
            before = self.records.get(case.id)
            self._note(out_of_time(case, deadline - self.clock(), before) or begun(case, before))
            if self.records[case.id].state is State.RUNNING:
                play = self._search if case.kind is Kind.BATCH else self._once
                play(case, deadline)
            print(line_of(self.records[case.id]), flush=True)

    def finish(self) -> int:
        report = self._report()
        print(suite_table(report.facts))
        check_suite(report)
        return report.finish(self.path)

    def _once(self, case: Case, deadline: float) -> None:
        ended = self.run(case.task(batch_for(case, self.records)), self._limit(case, deadline))
        self._note(self._judged(case, ended, deadline))

    def _search(self, case: Case, deadline: float) -> None:
        """Find the largest batch that fits; each answer is written, so that a resumed search knows it."""
        began, (first, most) = self.clock(), case.batches
        before = self.records[case.id]
        tried = {int(size): State(state) for size, state in before.result.get("tried", {}).items()}
        while (batch := next_batch(tried, first=first, most=most)) is not None:
            if deadline - self.clock() < case.limit and tried:
                self._note(replace(before, state=State.NO_TIME, reason="continue with --resume", starts=0))
                return
            ended = self._judged(case, self.run(case.task(batch), self._limit(case, deadline)), deadline)
            if ended.state in UNSETTLED | {State.SKIPPED, State.FAILED}:
                self._note(replace(ended, result=before.result))
                return
            tried[batch] = ended.state
            before = replace(before, result={"tried": dict(tried), "batch": largest(tried)})
            self._note(before)
        batch_found = largest(tried)
        state = State.OK if batch_found else State.OUT_OF_MEMORY
        self._note(replace(before, state=state, seconds=self.clock() - began))

    def _limit(self, case: Case, deadline: float) -> float:
        return min(case.limit, deadline - self.clock())

    def _judged(self, case: Case, ended: Record, deadline: float) -> Record:
        """Conclude a case; ``--resume`` repeats one that the suite's end cut off, not its own limit."""
        ended = replace(ended, id=case.id, starts=self.records[case.id].starts)
        if ended.state is State.TIME_LIMIT and ended.seconds < case.limit and self.clock() >= deadline:
            return replace(
                ended, state=State.NO_TIME, reason="the seconds of the suite ended in it", starts=0
            )
        return ended

    def _note(self, record: Record) -> None:
        self.records[record.id] = record
        draft = self.path.with_name(f".{self.path.name}")
        self._report().write(draft)
        draft.replace(self.path)

    def _report(self) -> Report:
        report = Report(name=f"benchmarks.training.bench.{self.name}")
        ordered = [self.records[case.id] for case in self.cases if case.id in self.records]
        report.facts = {"suite": self.name, "results": [record.as_json() for record in ordered]}
        if self.usd_hour:
            report.facts["usd_hour"] = self.usd_hour
        return report


def in_a_process(task: Mapping[str, Any], limit: float) -> Record:
    """Run one case where it can take nothing else with it."""
    with tempfile.TemporaryDirectory(prefix="training-bench-") as name:
        answer, began = Path(name) / "answer.json", time.monotonic()
        command = [sys.executable, "-m", "benchmarks.training.bench.measure", json.dumps(task), str(answer)]
        with (Path(name) / "output").open("wb") as output:
            process = subprocess.Popen(
                command, env=os.environ | task["env"], stdout=output, stderr=output, start_new_session=True
            )
            try:
                code: int | None = process.wait(limit)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                _end(process)
        document = json.loads(answer.read_bytes()) if answer.is_file() else None
        tail = (Path(name) / "output").read_text(errors="replace")[-_TAIL_CHARACTERS:]
        return outcome(task["id"], code, document, seconds=time.monotonic() - began, tail=tail)


def outcome(
    case_id: str, code: int | None, document: Mapping[str, Any] | None, *, seconds: float, tail: str
) -> Record:
    """Conclude a case: ``code`` is None when its time was up, ``document`` is None if it wrote nothing."""
    if code is None:
        why = f"not over after {seconds:.0f} s"
        return Record(id=case_id, state=State.TIME_LIMIT, seconds=seconds, reason=why)
    if document is not None:
        state, result = State(document["state"]), document["result"]
        return Record(id=case_id, state=state, seconds=seconds, reason=document["reason"], result=result)
    if code == -signal.SIGKILL:
        why = "killed; most likely the host ran out of memory"
        return Record(id=case_id, state=State.OUT_OF_MEMORY, seconds=seconds, reason=why)
    why = f"exited with {code}: {tail.strip()}"
    return Record(id=case_id, state=State.CRASHED, seconds=seconds, reason=why)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the process with all that it started, compilers for one."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
