"""The project's own list of real messages, and the program that scores any list."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from trainmaster.core.jobs.failures import FailureClass

from tests.failures.__main__ import first_sight, main
from tests.failures.messages import OWN, BadMessageError, read_messages
from tests.markdown import codes, table, text_of


def report_of(tmp_path: Path, *lines: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    given, out = tmp_path / "given.jsonl", tmp_path / "out.json"
    given.write_text("".join(json.dumps(line) + "\n" for line in lines))
    code = main(["--messages", str(given), "--json", str(out)])
    return code, json.loads(out.read_text())


def checks(report: dict[str, Any]) -> dict[str, bool | None]:
    return {check["id"]: check["ok"] for check in report["checks"]}


def test_nine_of_ten_real_messages_are_told_right_and_no_bug_is_retried(tmp_path: Path) -> None:
    assert main(["--json", str(tmp_path / "out.json")]) == 0
    report = json.loads((tmp_path / "out.json").read_text())
    assert checks(report) == {
        "messages": True,
        "accuracy": True,
        "accuracy-held-out": True,
        "user-code-not-retried": True,
    }
    rows = report["facts"]["messages"]
    assert sum(row["class"] == row["found"] for row in rows) / len(rows) >= 0.9


def test_the_list_has_real_messages_of_every_class_and_a_quarter_is_held_out() -> None:
    messages = read_messages(OWN)
    assert len(messages) >= 80
    assert all(message.seen and message.seen.startswith("https://") for message in messages)
    first = [message for message in messages if message.collection is None]
    assert sum(message.held_out for message in first) / len(first) >= 0.25
    assert not any(message.held_out for message in messages if message.collection is not None)
    counted = Counter(message.failure_class for message in messages)
    assert set(counted) == set(FailureClass)
    assert min(counted.values()) >= 3
    assert len({message.traces for message in messages}) == len(messages)


def test_the_guide_shows_what_each_list_was_taken_for_at_first_sight() -> None:
    rows = table(text_of("docs/failures.md"), "list", "collected", "messages", "correct at first sight")
    counted = {
        codes(row[0])[0]: {"messages": int(row[2]), "right": int(row[3])} for row in rows if codes(row[0])
    }
    assert counted == first_sight(read_messages(OWN))
    assert sum(counts["messages"] for counts in counted.values()) == 155


def test_first_sight_is_what_was_recorded_not_what_is_told_today(tmp_path: Path) -> None:
    line = {"log_tail": ["CUDA out of memory"], "class": "gpu-oom", "list": "x", "first_sight": "unknown"}
    _, report = report_of(tmp_path, line, {**line, "first_sight": "gpu-oom"}, {**line, "first_sight": None})
    assert report["facts"]["first_sight"] == {"x": {"messages": 2, "right": 1}}
    assert [row["found"] for row in report["facts"]["messages"]] == ["gpu-oom"] * 3


def test_no_bug_was_taken_for_something_to_try_again_at_first_sight_either() -> None:
    bugs = [
        one for one in read_messages(OWN) if one.collection and one.failure_class is FailureClass.USER_CODE
    ]
    assert len(bugs) == 45
    assert {str(one.first_sight) for one in bugs} == {"user-code"}


def test_a_list_of_others_is_scored(tmp_path: Path) -> None:
    code, report = report_of(
        tmp_path,
        {"reason": "Failed", "exit_code": 1, "log_tail": "x\nKeyError: 'a'", "class": "user-code"},
        {"reason": None, "exit_code": None, "log_tail": ["CUDA out of memory"], "class": "gpu-oom"},
    )  # fmt: skip
    assert code == 0
    assert report["schema"] == "trainmaster.report/1"
    assert checks(report) == {
        "messages": True,
        "accuracy": True,
        "accuracy-held-out": None,
        "user-code-not-retried": True,
    }
    assert [row["found"] for row in report["facts"]["messages"]] == ["user-code", "gpu-oom"]
    assert report["facts"]["messages"][0]["log_tail"] == ["x", "KeyError: 'a'"]


def test_a_list_that_is_told_wrong_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = {"reason": None, "log_tail": ["NCCL error: unhandled system error"], "class": "user-code"}
    code, report = report_of(tmp_path, wrong)
    assert code == 1
    assert checks(report) == {
        "messages": True,
        "accuracy": False,
        "accuracy-held-out": None,
        "user-code-not-retried": False,
    }
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("user-code"))
    assert row.split() == ["user-code", "1"]


@pytest.mark.parametrize(
    "line",
    ["", '{"reason": 1', "[]", '{"reason": "x"}', '{"class": "bug"}', '{"class": "image", "log_tail": 5}'],
)
def test_a_line_that_is_no_message_is_named(tmp_path: Path, line: str) -> None:
    given = tmp_path / "given.jsonl"
    given.write_text(f'{{"class": "image"}}\n{line}\n')
    if not line:
        assert len(read_messages(given)) == 1
        return
    with pytest.raises(BadMessageError, match="line 2 is not"):
        read_messages(given)
    with pytest.raises(SystemExit) as caught:
        main(["--messages", str(given), "--json", str(tmp_path / "out.json")])
    assert caught.value.code == 2
