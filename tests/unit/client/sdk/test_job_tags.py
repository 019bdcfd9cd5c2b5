"""Options of a job become the tags that the API reads; what is wrong is said before anything is sent."""

from typing import Any

import pytest
from trainmaster.core.request.options import MAX_PRIORITY, MAX_RETRIES, READERS, read_options
from trainmaster_client.errors import InvalidOptionsError
from trainmaster_client.sdk import job_tags as rules
from trainmaster_client.sdk.job_tags import job_tags

ALL: dict[str, Any] = {
    "priority": 5,
    "team": "vision",
    "preemptible": False,
    "retries": 2,
    "on_oom": "halve_batch",
    "alternatives": ["ml.g5.12xlarge=1", "ml.g5.4xlarge=4:spot@subnet-0ab1"],
    "plan": "first",
    "elastic": (2, 4, 8),
    "hold_open": "30m",
}


class Handle:
    """What ``submit`` gives, as far as a condition asks."""

    name = "prepare"


@pytest.mark.parametrize(
    ("after", "value"),
    [
        pytest.param("prepare", "prepare", id="a name"),
        pytest.param("prepare afterany:clean", "prepare afterany:clean", id="conditions in one text"),
        pytest.param(Handle(), "prepare", id="a handle"),
        pytest.param([Handle(), "afternotok:clean"], "prepare afternotok:clean", id="a list"),
    ],
)
def test_conditions_are_names_texts_or_handles(after: Any, value: str) -> None:
    assert job_tags(after=after) == [{"Key": "trainmaster:after", "Value": value}]


def test_each_option_is_one_tag() -> None:
    assert job_tags(**ALL) == [
        {"Key": "priority", "Value": "5"},
        {"Key": "team", "Value": "vision"},
        {"Key": "trainmaster:preemptible", "Value": "false"},
        {"Key": "trainmaster:retries", "Value": "2"},
        {"Key": "trainmaster:on_oom", "Value": "halve_batch"},
        {"Key": "trainmaster:alternatives", "Value": "ml.g5.12xlarge=1 ml.g5.4xlarge=4:spot@subnet-0ab1"},
        {"Key": "trainmaster:plan", "Value": "first"},
        {"Key": "trainmaster:elastic", "Value": "2 4 8"},
        {"Key": "trainmaster:hold-open", "Value": "30m"},
    ]


def test_an_option_that_is_left_out_or_none_is_no_tag() -> None:
    assert job_tags() == []
    assert job_tags(priority=0, team=None, preemptible=True) == [
        {"Key": "priority", "Value": "0"},
        {"Key": "trainmaster:preemptible", "Value": "true"},
    ]


def test_the_api_reads_every_option_and_has_no_other() -> None:
    parents = [f"afterany:{'p' * 60}-{number:02d}" for number in range(30)]
    waits: dict[str, Any] = {"after": parents, "after_failed": "hold"}
    tags = {tag["Key"]: tag["Value"] for tag in job_tags(**ALL, **waits)}
    assert set(tags) == set(READERS) - {"trainmaster:array"}, "submit_array writes that one"
    options = read_options(tags)
    assert [f"{one.kind}:{one.job}" for one in options.after] == parents
    assert options.holds_after_failure
    assert (options.priority, options.team, options.preemptible, options.retries) == (5, "vision", False, 2)
    assert [one.count for one in options.alternatives] == [1, 4]
    assert (rules.MAX_PRIORITY, rules.MAX_RETRIES) == (MAX_PRIORITY, MAX_RETRIES)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        pytest.param(
            {"priority": 1001},
            "priority: 1001 is not allowed; give a whole number from 0 to 1000",
            id="too high",
        ),
        pytest.param(
            {"priority": True},
            "priority: True is not allowed; give a whole number from 0 to 1000",
            id="no number",
        ),
        pytest.param(
            {"retries": -1}, "retries: -1 is not allowed; give a whole number from 0 to 5", id="below zero"
        ),
        pytest.param(
            {"team": " vision"},
            "team: ' vision' is not allowed; name one of your teams, or leave it out",
            id="a space around the team",
        ),
        pytest.param(
            {"preemptible": "no"},
            "preemptible: 'no' is not allowed; give True or False",
            id="text for a bool",
        ),
        pytest.param(
            {"on_oom": "retry"},
            "on_oom: 'retry' is not allowed; give 'halve_batch', or leave it out",
            id="on_oom",
        ),
        pytest.param(
            {"elastic": [8, 2]},
            "elastic: [8, 2] is not allowed; give a text like '2-8' or '2-8:2', or a list of counts like"
            " [2, 4, 8], the least first",
            id="elastic",
        ),
        pytest.param(
            {"plan": "always"}, "plan: 'always' is not allowed; give 'first', 'only' or 'never'", id="plan"
        ),
        pytest.param(
            {"alternatives": "ml.g5.4xlarge=4"},
            "alternatives: 'ml.g5.4xlarge=4' is not allowed; give a list of shapes, each once, like "
            "['ml.g5.12xlarge=1', 'ml.g5.4xlarge=4:spot'], or 'cheapest'",
            id="text for a list",
        ),
        pytest.param(
            {"alternatives": ["ml.g5.4xlarge=4"] * 2},
            "alternatives: ['ml.g5.4xlarge=4', 'ml.g5.4xlarge=4'] is not allowed; give a list of shapes, "
            "each once, like ['ml.g5.12xlarge=1', 'ml.g5.4xlarge=4:spot'], or 'cheapest'",
            id="a shape twice",
        ),
        pytest.param(
            {"alternatives": [f"ml.g5.4xlarge={n}" for n in range(10, 30)]},
            "alternatives: takes 339 characters as a tag, SageMaker allows 256; leave some out",
            id="too long for a tag",
        ),
        pytest.param(
            {"prioritty": 5},
            "prioritty: is not an option; use one of priority, team, preemptible, retries, "
            "on_oom, alternatives, plan, elastic, hold_open, after, after_failed",
            id="no such option",
        ),
        pytest.param(
            {"after": ["afterok:prepare", "afterrok:clean"]},
            "after: 'afterrok' is not a type of condition; did you mean afterok? use one of afterok, "
            "afterany, afternotok, aftercorr",
            id="a typo in a condition",
        ),
        pytest.param(
            {"after": "-prepare"},
            "after: '-prepare' names no job; give names of jobs, like 'prepare' or 'afterany:prepare'",
            id="a condition without a job",
        ),
        pytest.param(
            {"after_failed": "wait"},
            "after_failed: 'wait' is not allowed; give 'hold' or 'stop'",
            id="no such consequence",
        ),
    ],
)
def test_what_is_wrong_is_said_with_what_to_give(options: dict[str, Any], line: str) -> None:
    with pytest.raises(InvalidOptionsError) as caught:
        job_tags(**options)
    assert str(caught.value) == f"These options are wrong; nothing was sent.\n  {line}"


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(InvalidOptionsError) as caught:
        job_tags(priority=-1, retries=9)
    assert [problem.field for problem in caught.value.problems] == ["priority", "retries"]


def test_the_word_cheapest_stands_for_a_list_of_shapes() -> None:
    assert job_tags(alternatives="cheapest") == [{"Key": "trainmaster:alternatives", "Value": "cheapest"}]
