"""Half the batch after the GPUs ran out of memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trainmaster.core.lifecycle.retries import halve
from trainmaster.core.policy.governance import OnOom

NAMES = OnOom(batch=("batch_size", "bs"), accumulation=("accumulation", "steps"))


@pytest.mark.parametrize(
    ("hyperparameters", "rewritten"),
    [
        pytest.param({"batch_size": "8"}, {"batch_size": "4"}, id="half of it"),
        pytest.param({"batch_size": '"8"'}, {"batch_size": '"4"'}, id="a text stays a text"),
        pytest.param(
            {"batch_size": "8", "accumulation": "3"},
            {"batch_size": "4", "accumulation": "6"},
            id="twice the accumulation keeps the effect",
        ),
        pytest.param(
            {"batch_size": "8", "accumulation": '"1"'},
            {"batch_size": "4", "accumulation": '"2"'},
            id="each in its own form",
        ),
        pytest.param({"batch_size": "5"}, {"batch_size": "2"}, id="an odd one is rounded down"),
        pytest.param({"batch_size": "3", "bs": "8"}, {"batch_size": "1"}, id="the first name of the policy"),
        pytest.param({"batch_size": "1", "bs": "8"}, {"bs": "4"}, id="the first that can be halved"),
        pytest.param(
            {"bs": "8", "accumulation": "auto", "steps": "2"},
            {"bs": "4", "steps": "4"},
            id="the first accumulation that is a number",
        ),
        pytest.param({"bs": "8", "accumulation": "0"}, {"bs": "4"}, id="no accumulation of nothing"),
        pytest.param({"bs": "8", "lr": "2"}, {"bs": "4"}, id="others are left alone, none is added"),
        pytest.param({"batch_size": "1"}, None, id="never below one"),
        pytest.param({"batch_size": "8.0"}, None, id="not a whole number"),
        pytest.param({"batch_size": "-8"}, None, id="not a negative one"),
        pytest.param({"batch_size": '"8'}, None, id="half a quote"),
        pytest.param({"batch_size": " 8"}, None, id="a space is part of the text"),
        pytest.param({"batch_size": "٨"}, None, id="only plain digits"),
        pytest.param({}, None, id="nothing to halve"),
    ],
)
def test_what_is_rewritten(hyperparameters: dict[str, str], rewritten: dict[str, str] | None) -> None:
    found = halve(hyperparameters, NAMES)
    assert (None if found is None else dict(found.rewritten)) == rewritten


@pytest.mark.parametrize(
    ("hyperparameters", "says"),
    [
        pytest.param(
            {"bs": "8", "steps": "2"}, "bs 8 to 4, steps 2 to 4", id="both numbers, before and after"
        ),
        pytest.param(
            {"bs": "8"}, "bs 8 to 4, which makes each step smaller", id="that the effect is another"
        ),
    ],
)
def test_what_its_owner_is_told(hyperparameters: dict[str, str], says: str) -> None:
    found = halve(hyperparameters, NAMES)
    assert found is not None
    assert found.says == says


@given(st.integers(2, 10**6), st.booleans())
def test_halving_again_and_again_ends_at_one(batch: int, quoted: bool) -> None:  # noqa: FBT001
    values = {"bs": f'"{batch}"' if quoted else str(batch)}
    times = 0
    while (found := halve(values, NAMES)) is not None:
        values |= found.rewritten
        times += 1
    assert values["bs"].strip('"') == "1"
    assert times == batch.bit_length() - 1
