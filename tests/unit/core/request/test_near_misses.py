"""C7 and O12: tags that are nearly ours do nothing, and their author is told."""

import pytest
from trainmaster.core.request.options import READERS, near_misses, nearest_option
from trainmaster.core.request.validation import check_request

from tests.bodies import body, tag_list


@pytest.mark.parametrize(
    ("key", "option"),
    [
        ("Priority", "priority"),
        ("PRIORITY", "priority"),
        ("priority ", "priority"),
        (" priority", "priority"),
        ("Team", "team"),
        ("preemptible", "trainmaster:preemptible"),
        ("Preemptible", "trainmaster:preemptible"),
        ("pre-emptible", "trainmaster:preemptible"),
        ("retries", "trainmaster:retries"),
        ("alternatives", "trainmaster:alternatives"),
        ("on_oom", "trainmaster:on_oom"),
        ("On OOM", "trainmaster:on_oom"),
        ("trainmaster/retries", "trainmaster:retries"),
        ("trainmaster.priority", "priority"),
        ("TrainMaster retries", "trainmaster:retries"),
    ],
)
def test_O12_a_tag_that_is_nearly_ours_is_accepted_with_a_warning(key: str, option: str) -> None:
    whole = body(Tags=tag_list({"owner": "ada", key: "900"}))
    assert check_request(whole) == []
    (warning,) = near_misses(whole)
    assert (warning.field, warning.rule) == ("Tags[1].Key", None)
    assert warning.hint == f"did you mean {option}? write it exactly so"
    assert key in warning.message


@pytest.mark.parametrize("key", ["owner", "model_name", "priorities", "teams", "cost/team", "project:team"])
def test_O12_other_tags_are_left_alone(key: str) -> None:
    assert list(near_misses(body(Tags=tag_list({key: "x"})))) == []


def test_O12_options_themselves_are_no_near_misses() -> None:
    assert list(near_misses(body(Tags=tag_list(dict.fromkeys(READERS, "1"))))) == []
    assert list(near_misses(body(Tags=None))) == []


@pytest.mark.parametrize(
    ("key", "option"),
    [
        ("trainmaster:Retries", "trainmaster:retries"),
        ("Trainmaster:retries", "trainmaster:retries"),
        ("trainmaster:preemptable", "trainmaster:preemptible"),
        ("trainmaster:priority", "priority"),
        ("trainmaster:Team", "team"),
    ],
)
def test_O12_below_our_prefix_what_is_unknown_stays_refused(key: str, option: str) -> None:
    whole = body(Tags=tag_list({key: "1"}))
    (error,) = check_request(whole)
    assert (error.field, error.hint) == ("Tags[0].Key", f"did you mean {option}?")
    assert list(near_misses(whole)) == []


def test_every_option_is_the_nearest_to_its_own_name() -> None:
    assert {key: nearest_option(key.upper()) for key in READERS} == {key: key for key in READERS}
