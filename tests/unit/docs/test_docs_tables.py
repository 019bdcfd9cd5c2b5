"""Tables and diagrams of the documents say what the code says."""

import dataclasses
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from trainmaster.adapters.dynamodb import array_layout, dependency_rows, history_rows, layout
from trainmaster.core.forecast.differences import Kind
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.observations import TrainingJobEnd
from trainmaster.core.jobs.reason_codes import ForeignCode, ReasonCode
from trainmaster.core.jobs.states import FINAL, LIVE, TRANSITIONS, JobState
from trainmaster.core.lifecycle import decision
from trainmaster.core.lifecycle.decision import Row
from trainmaster.core.request.options import AFTER_TAGS, READERS
from trainmaster_client.cli.exit_codes import ExitCode
from trainmaster_client.jobs import why_lines

from local.config import ReadyInfo
from local.control import Control
from local.up import _parser
from local.worlds import VALUES
from tests.builders import NOON, live_job, minutes, seen
from tests.ends import UNKNOWN, end_of
from tests.faults.rows import ROWS
from tests.markdown import ROOT, blocks, codes, table, text_of
from tests.template.functions import ROUTES
from tests.template.rights import RIGHTS
from tests.template.stack import source

ARCHITECTURE = text_of("docs/ARCHITECTURE.md")
CLI = text_of("docs/cli.md")
TWIN = text_of("docs/twin.md")
OPTIONS = text_of("docs/guides/migrate-from-fit.md")
PARAMETERS = text_of("docs/guides/deploy.md")


def test_the_diagram_is_the_table_of_transitions() -> None:
    (diagram,) = blocks(ARCHITECTURE, "mermaid")
    drawn = set(re.findall(r"(\S+) --> (\S+)", diagram.text))
    steps = {(str(state), str(after)) for state, afters in TRANSITIONS.items() for after in afters}
    assert drawn == steps | {("[*]", "pending")} | {(str(state), "[*]") for state in FINAL}


def test_every_state_is_explained_and_the_live_ones_hold_their_instances() -> None:
    rows = table(ARCHITECTURE, "state", "means", "holds its instances")
    holds = {state: row[2] == "yes" for row in rows for state in codes(row[0])}
    assert holds == {str(state): state in LIVE for state in JobState}


RECORDED = Reason(code=ForeignCode("why"), message="recorded when it was asked to stop")
ENDS: list[dict[str, Any] | None] = [
    None,
    *(
        {"status": status, "secondary": secondary}
        for status in ("Completed", "Stopped", "Failed")
        for secondary in (status, "MaxRuntimeExceeded", "MaxWaitTimeExceeded", "MaxPendingTimeExceeded")
    ),
    *(
        {"status": status, "secondary": status, "max_pending": minutes(30), "ended_at": NOON + minutes(31)}
        for status in ("Stopped", "Failed")
    ),
    {"status": "Failed", "secondary": "Failed", "failure_reason": "CapacityError: none left"},
    {"status": "Failed", "secondary": "Failed", "failure_reason": "AlgorithmError: CapacityError:"},
]


HEAD = ("the job is", "SageMaker says", "and", "it becomes", "with reason")
SAYS = {
    None: "any other end",
    TrainingJobEnd.GONE: "nothing: it does not know the training job",
    TrainingJobEnd.NEVER_TRAINED: "`Stopped` or `Failed`: it never trained, and its pending time is over",
    TrainingJobEnd.NO_CAPACITY: "`Failed`, its reason begins `CapacityError:`",
}
REASONS = {
    JobState.STOPPED: "as recorded with the stop",
    JobState.PREEMPTED: "as recorded with the preemption",
    JobState.PENDING: "its failure class",
    JobState.FAILED: "its failure class",
}


def cells(row: Row) -> list[str]:
    says = SAYS.get(row.says) or " / ".join(f"`{part}`" for part in str(row.says).split("/"))
    return [
        "any live" if row.job is None else f"`{row.job}`",
        says,
        "" if row.only_if is None else row.only_if.value,
        f"`{row.becomes}`",
        REASONS[row.becomes] if row.code is None else f"`{row.code}`",
    ]


def test_the_table_of_ends_is_that_of_the_code() -> None:
    assert table(ARCHITECTURE, *HEAD) == [cells(row) for row in decision.ENDS]


def fits(row: list[str], state: JobState, news: dict[str, Any] | None) -> bool:
    """A row of the table of ends speaks of this end of a job in this state, whatever the policy says."""
    if row[2] or (row[0] != "any live" and codes(row[0]) != [state]):
        return False
    if news is None or row[1].startswith("nothing"):
        return news is None and row[1].startswith("nothing")
    if "never trained" in row[1]:
        return "max_pending" in news and state in {JobState.STARTING, JobState.RUNNING}
    if row[1] == "any other end":
        return True
    named = codes(row[1])
    if "begins" in row[1]:
        begin = named.pop()
        if not news.get("failure_reason", "").startswith(begin):
            return False
    return named == [news["status"], news["secondary"]][: len(named)]


def end_in(row: list[str]) -> tuple[str, str]:
    code = codes(row[4])
    recorded = UNKNOWN.failure_class if row[4] == REASONS[JobState.FAILED] else RECORDED.code
    return codes(row[3])[0], code[0] if code else recorded


@pytest.mark.parametrize("state", sorted(LIVE))
def test_ends_that_the_policy_has_no_say_in_are_as_the_table_says(state: JobState) -> None:
    rows = table(ARCHITECTURE, *HEAD)
    reason = RECORDED if state in {JobState.STOPPING, JobState.PREEMPTING} else None
    for news in ENDS:
        end = end_of(live_job(state=state, reason=reason), None if news is None else seen(**news))
        assert end is not None
        row = next(row for row in rows if fits(row, state, news))
        assert end_in(row) == (str(end.becomes), end.reason.code), news


def test_the_rows_of_the_table_are_those_of_the_layout() -> None:
    described = [
        row
        for module in (layout, dependency_rows, array_layout, history_rows)
        for row in table(f"{module.__doc__}".replace("``", "`"), "row", "pk", "sk")
    ]
    assert table(ARCHITECTURE, "row", "pk", "sk") == described


def test_every_crash_that_is_tested_is_in_the_table_and_only_those() -> None:
    tests = (ROOT / "tests/faults/test_crashes.py").read_text()
    tested = set(re.findall(r"^def test_(A[0-9]+)_", tests, re.MULTILINE))
    shown = [row[0] for row in table(ARCHITECTURE, "", "dies", "leaves", "repaired by")]
    assert shown == [row.id for row in ROWS if row.id in tested]
    assert tested == {row.id for row in ROWS if row.id.startswith("A")}


TECHNICAL = ("dynamodb:", "kms:", "logs:CreateLogStream", "logs:PutLogEvents", "sqs:SendMessage")


def granted(function: str) -> set[str]:
    role = f"{''.join(part.capitalize() for part in function.split('_'))}FunctionRole"
    return {
        action
        for action, resource, _ in RIGHTS[role]
        if not (action.startswith(TECHNICAL) and resource.startswith("${"))
    }


def test_the_table_of_rights_is_that_of_the_template() -> None:
    shown: dict[str, set[str]] = {}
    name = ""
    for function, may, _ in table(ARCHITECTURE, "function", "may", "on"):
        name = codes(function)[0] if function else name
        shown.setdefault(name, set()).update(codes(may))
    assert shown == {function: granted(function) for function in shown}
    assert len(shown) == len(list((ROOT / "functions").glob("*/app.py")))


def test_what_is_looked_for_is_where_the_table_says() -> None:
    for question, file, name in table(ARCHITECTURE, "question", "file", "name in it"):
        (path,), (named,) = codes(file), codes(name)
        assert named in (ROOT / path).read_text(encoding="utf-8"), question


def test_every_room_of_the_layer_is_named() -> None:
    rooms = {code for row in table(ARCHITECTURE, "room", "what lives there") for code in codes(row[0])}
    package = ROOT / "layers/trainmaster/trainmaster"
    parts = (*package.iterdir(), *(path for path in (package / "core").iterdir() if path.is_dir()))
    there = {path.relative_to(package).as_posix() + "/" * path.is_dir() for path in parts}
    assert there - rooms - {"__init__.py", "__pycache__/", "core/__pycache__/"} == set()


def test_the_tags_in_the_guide_are_those_that_do_something() -> None:
    shown = {codes(row[0])[0] for row in table(OPTIONS, "tag", "values", "default")}
    assert shown == set(READERS) - set(AFTER_TAGS[1:])


def test_the_parameters_in_the_guide_are_those_of_the_template() -> None:
    shown = {codes(row[0])[0]: row[1].strip("`") for row in table(PARAMETERS, "parameter", "default", "")}
    words = {None: "none", "": "empty"}
    declared = source()["Parameters"].items()
    assert shown == {name: str(words.get(one.get("Default"), one.get("Default"))) for name, one in declared}


def test_the_calls_of_the_api_are_those_of_the_template() -> None:
    shown = [
        tuple(codes(row[0])[0].split()) for row in table(text_of("docs/api.md"), "call", "who", "answers")
    ]
    assert sorted(shown) == sorted(ROUTES)


def test_the_changes_of_a_tried_policy_are_all_explained() -> None:
    shown = {codes(row[0])[0] for row in table(text_of("docs/api.md"), "change", "means")}
    assert shown == {str(kind) for kind in Kind}


def test_every_reason_to_wait_is_explained_and_has_advice() -> None:
    rows = table(CLI, "code", "why the job waits", "what would help")
    assert {codes(row[0])[0] for row in rows} == set(why_lines.HELP)
    assert set(why_lines.HELP) <= set(ReasonCode)


def test_the_exit_codes_are_those_of_the_command() -> None:
    shown = {int(row[0]) for row in table(CLI, "exit code", "means")}
    assert shown == set(map(int, ExitCode))


def twin_options() -> Iterator[tuple[str, str]]:
    for action in _parser()._actions:
        if "--help" not in action.option_strings:
            shows_default = action.default not in (None, False, []) or action.type is int
            yield action.option_strings[0], str(action.default) if shows_default else ""


def test_the_options_of_the_twin_are_all_there_with_their_defaults() -> None:
    rows = table(TWIN, "option", "default", "")
    assert [(codes(row[0])[0], row[1].strip("`")) for row in rows] == list(twin_options())


def test_the_fields_of_the_ready_file_are_all_there() -> None:
    shown = [code for row in table(TWIN, "field", "") for code in codes(row[0])]
    assert shown == [field.name for field in dataclasses.fields(ReadyInfo)]


def test_the_control_calls_are_all_there() -> None:
    shown = {tuple(codes(row[0])[0].split()) for row in table(TWIN, "call", "fields", "")}
    assert shown == set(Control._routes(object.__new__(Control)))


def test_the_values_of_the_worlds_are_those_of_the_code() -> None:
    rows = table(TWIN, "value", "kind", "harsh", "unit", "known", "source")
    assert rows == [
        [
            f"`{value.name}`",
            f"`{json.dumps(value.kind)}`",
            f"`{json.dumps(value.harsh)}`",
            value.unit,
            str(value.standing),
            value.source,
        ]
        for value in VALUES
    ]


def test_every_folder_of_tests_is_explained() -> None:
    shown = {codes(row[0])[0] for row in table(text_of("CONTRIBUTING.md"), "folder", "proves", "touches")}
    there = {path.parent for path in (ROOT / "tests").glob("*/**/test_*.py")}
    assert shown == {Path(*path.relative_to(ROOT).parts[:2]).as_posix() for path in there}
