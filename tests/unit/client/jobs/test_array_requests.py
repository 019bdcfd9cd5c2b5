"""The body of an array: indices, values as columns or rows, and mistakes with index and name."""

from typing import Any

import pytest
from trainmaster_client.errors import InvalidOptionsError
from trainmaster_client.jobs.array_requests import ArrayWish, array_body

REQUEST: dict[str, Any] = {"TrainingJobName": "sweep", "HyperParameters": {"lr": "0.1", "seed": "0"}}


def body(**wish: Any) -> dict[str, Any]:
    return array_body(REQUEST, ArrayWish(**wish))


def refused(**wish: Any) -> str:
    with pytest.raises(InvalidOptionsError) as error:
        body(**wish)
    return str(error.value)


def test_rows_become_columns_of_texts_and_number_the_tasks() -> None:
    rows = [{"lr": 0.001, "seed": 1}, {"lr": "1e-4", "seed": True}]
    assert body(values=rows, at_most=1, stop_after_failures=0) == {
        "request": REQUEST,
        "tasks": "0-1",
        "at_most": 1,
        "stop_after_failures": 0,
        "values": {"lr": ["0.001", "1e-4"], "seed": ["1", "true"]},
    }


def test_columns_are_taken_and_rows_of_different_names_stay_rows() -> None:
    assert body(values={"lr": ["1", "2"]})["values"] == {"lr": ["1", "2"]}
    rows = [{"lr": "1"}, {"seed": "2"}]
    assert body(values=rows)["values"] == rows


def test_a_throttle_of_the_indices_is_sent_beside_them() -> None:
    sent = body(tasks="1 3 5@2")
    assert (sent["tasks"], sent["at_most"]) == ("1 3 5", 2)
    assert body(tasks="0-63%8", at_most=8)["at_most"] == 8
    assert "values" not in sent


def test_conditions_become_tags_of_the_request() -> None:
    sent = body(tasks="0-1", after=["aftercorr:prepare", "afterany:clean"])
    assert sent["request"]["Tags"] == [
        {"Key": "trainmaster:after", "Value": "aftercorr:prepare afterany:clean"}
    ]


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ({}, "tasks: is missing, and so are values"),
        ({"tasks": "5-3"}, "tasks: has the range 5-3, which ends before it begins"),
        ({"tasks": "1,1"}, "tasks: has index 1 twice"),
        ({"tasks": "0-2", "values": [{"lr": 1}]}, "values: has 1 rows for 3 tasks; give one row a task"),
        (
            {"tasks": "7-8", "values": [{"lr": 1}, {"lrr": 1}]},
            "values[1].lrr: of task 8 is no hyperparameter of the request; did you mean lr?",
        ),
        ({"values": [{"lr": None}]}, "values[0].lr: of task 0 cannot be written: lr is of type NoneType"),
        ({"values": {"lr": [1, 2], "seed": [1]}}, "values: has columns of different lengths: lr 2, seed 1"),
        ({"values": [3]}, "values[0]: is not a mapping of hyperparameters"),
        ({"tasks": "0-3%2", "at_most": 3}, "at_most: is 3, and tasks says 2"),
        ({"tasks": "0-3", "at_most": 0}, "at_most: is 0; let at least 1 task run at once"),
    ],
)  # fmt: skip
def test_P10_a_mistake_names_the_index_and_the_field(wish: dict[str, Any], message: str) -> None:
    assert message in refused(**wish)


def test_P10_all_mistakes_come_at_once_up_to_a_bound() -> None:
    rows = [{f"x{number}": 1} for number in range(50)]
    message = refused(values=rows)
    assert message.count("is no hyperparameter") == 20
    assert "values[0].x0: of task 0" in message
