import pytest

from training.config.elastic import Widths


@pytest.mark.parametrize(
    ("text", "width", "counts"),
    [
        pytest.param("2-5", 3, (2, 3, 4, 5), id="a range"),
        pytest.param("2-8:2", 2, (2, 4, 6, 8), id="a range with a step"),
        pytest.param("8 2 4", 4, (2, 4, 8), id="a list"),
        pytest.param("2 4", 3, (2, 3, 4), id="the width of the attempt always counts"),
        pytest.param("", 3, (3,), id="not elastic"),
    ],
)
def test_the_widths_are_those_of_the_tag(text: str, width: int, counts: tuple[int, ...]) -> None:
    assert Widths.of({"TRAINMASTER_WIDTHS": text}, width).counts == counts


def test_a_form_of_a_newer_plane_leaves_every_count_up_to_the_largest() -> None:
    env = {"TRAINMASTER_WIDTHS": "4..8", "TRAINMASTER_LARGEST_WIDTH": "4"}
    assert Widths.of(env, 2).counts == (1, 2, 3, 4)


def test_a_launcher_beside_a_plane_that_says_nothing_makes_no_job_elastic() -> None:
    widths = Widths.of({"TRAINMASTER_LARGEST_WIDTH": "3"}, 3)
    assert (widths.counts, widths.is_elastic, widths.largest) == ((3,), False, 3)


def test_the_largest_width_alone_makes_a_job_elastic() -> None:
    widths = Widths.of({"TRAINMASTER_LARGEST_WIDTH": "3"}, 2)
    assert (widths.counts, widths.is_elastic) == ((1, 2, 3), True)
