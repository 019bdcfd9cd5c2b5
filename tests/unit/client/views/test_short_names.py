"""Names in a narrow column: cut in the middle, and never two of them shown the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from trainmaster_client.views.short_names import end_cut, middle_cut, shortened

SDK = ["pytorch-training-2026-11-21-10-03-55-123", "pytorch-training-2026-11-21-10-03-55-987"]


def test_names_that_fit_stay_as_they_are() -> None:
    assert shortened(["a", "bc"], 2) == {"a": "a", "bc": "bc"}


def test_the_end_is_kept_where_programs_put_what_differs() -> None:
    assert shortened(SDK, 16) == {SDK[0]: "pytorch…3-55-123", SDK[1]: "pytorch…3-55-987"}


@pytest.mark.parametrize(
    ("names", "width", "shown"),
    [
        pytest.param(
            ["vision-a-training", "vision-b-training"], 10, ["vision-a…g", "vision-b…g"], id="begin"
        ),
        pytest.param(["x-1234-training", "x-5234-training"], 10, ["x-12…ining", "x-52…ining"], id="both"),
        pytest.param(
            ["training-aaaa-training", "training-bbbb-training"], 9, ["trai…ning", "trainin…2"], id="middle"
        ),
    ],
)
def test_more_of_one_side_is_kept_where_that_tells_them_apart(
    names: list[str], width: int, shown: list[str]
) -> None:
    assert list(shortened(names, width).values()) == shown


@given(st.sets(st.text("ab-", min_size=1, max_size=63), min_size=2, max_size=40), st.integers(6, 20))
def test_no_two_names_are_shown_the_same_and_none_is_too_wide(names: set[str], width: int) -> None:
    shown = shortened(sorted(names), width)
    assert len(set(shown.values())) == len(names)
    assert max(map(cell_len, shown.values())) <= width


@given(st.text(max_size=40), st.integers(1, 30))
def test_cells_are_counted_as_a_terminal_does(text: str, width: int) -> None:
    assert cell_len(middle_cut(text, width)) <= width
    assert cell_len(end_cut(text, width)) <= width


def test_a_wide_character_is_not_cut_in_half() -> None:
    assert middle_cut("訓練訓練訓練", 6) == "訓…練"
    assert end_cut("訓練訓練訓練", 6) == "訓練…"
