"""What the body of an array says, and every mistake in it with index and field."""

import pytest
from trainmaster.core.arrays.wanted import read_array, request_mistakes

BODY = {"TrainingJobName": "sweep", "HyperParameters": {"lr": "1", "seed": "0"}}


def test_values_as_rows_and_as_columns_mean_the_same():
    rows = [{"lr": "5"}, {"lr": "1"}, {"lr": "3"}]
    by_rows = read_array({"request": BODY, "tasks": "5,1,3", "values": rows}).wanted
    by_columns = read_array({"request": BODY, "tasks": "5,1,3", "values": {"lr": ["5", "1", "3"]}}).wanted

    assert by_rows is not None
    assert by_rows == by_columns
    assert by_rows.indices == (1, 3, 5)
    assert [values["lr"] for values in by_rows.values] == ["1", "3", "5"]


@pytest.mark.parametrize(
    ("change", "field", "part"),
    [
        ({"tasks": None}, "tasks", "missing"),
        ({"tasks": 3}, "tasks", "no text"),
        ({"tasks": "1,1"}, "tasks", "index 1 twice"),
        ({"at_most": 0}, "at_most", "at least 1"),
        ({"at_most": True}, "at_most", "at least 1"),
        ({"tasks": "0-1%2", "at_most": 3}, "at_most", "tasks says 2"),
        ({"stop_after_failures": -1}, "stop_after_failures", "from 0 to 100"),
        ({"request": []}, "request", "CreateTrainingJob"),
        ({"more": 1}, "more", "unknown"),
        ({"values": "x"}, "values", "neither"),
        ({"values": [{}]}, "values", "1 objects for 2 tasks"),
        ({"values": [{}, 3]}, "values[1]", "task 1 is no object"),
        ({"values": [{"lr": "1"}, {"lr": 2}]}, "values[1].lr", "task 1 is no text"),
        ({"values": {"lr": ["1"]}}, "values.lr", "1 values for 2 tasks"),
        ({"values": {"lr": ["1", 2]}}, "values.lr[1]", "task 1 is no text"),
        ({"values": {"lr": 3}}, "values.lr", "no list"),
        ({"values": {"lr": ["1", "x" * 2501]}}, "values.lr[1]", "2501 characters"),
    ],
)
def test_each_mistake_is_named(change, field, part):
    read = read_array({"request": BODY, "tasks": "0-1"} | change)

    assert read.wanted is None
    assert [error.field for error in read.errors] == [field]
    assert part in read.errors[0].message


def test_a_request_has_room_for_what_a_task_adds():
    wanted = read_array({"request": BODY, "tasks": "0-99", "values": [{"lrr": "1"}] * 100}).wanted
    assert wanted is not None
    request = {
        **BODY,
        "TrainingJobName": "a" * 61,
        "Environment": {f"V{number}": "" for number in range(96)},
    }

    errors = request_mistakes(request, wanted, prefix="request.")

    assert [error.field for error in errors[:3]] == [
        "request.TrainingJobName",
        "request.Environment",
        "values.lrr",
    ]
    assert "at most 60 characters" in errors[0].hint
    assert "95" in errors[1].hint
    assert "task 0" in errors[2].message
    assert (
        request_mistakes({**request, "TrainingJobName": "a" * 60, "Environment": {}}, wanted)[0].field
        == "values.lrr"
    )
