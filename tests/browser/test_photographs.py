"""Pictures in docs/images show the pages as they are: headings, columns and landmarks are still theirs."""

import json

import pytest

from demos.stage import photographs
from demos.stage.dashboard_tab import PAGES
from tests.browser.conftest import OpenTab

AGAIN = "the page is not the one photographed: python -m demos.dashboard --images docs/images"


@pytest.mark.thorough
@pytest.mark.parametrize(
    "picture", sorted(photographs.IMAGES.glob("dashboard-*.png")), ids=lambda one: one.stem
)
def test_a_picture_is_small_and_shows_the_page_as_it_is(picture, open_tab: OpenTab) -> None:
    assert picture.stat().st_size <= photographs.MOST_BYTES
    then = json.loads(picture.with_suffix(".json").read_text("utf-8"))
    tab = open_tab(viewport=photographs.VIEWPORT)
    tab.go(photographs.PHOTOGRAPHED[picture.stem.removeprefix("dashboard-")])
    assert lasting(photographs.structure(tab)) == lasting(then), AGAIN


def test_pictures_are_there() -> None:
    assert len(list(photographs.IMAGES.glob("dashboard-*.png"))) >= len(PAGES) - 1


def test_each_picture_has_a_small_dark_copy_and_no_other_is_kept() -> None:
    dark = {one.name: one.stat().st_size for one in (photographs.IMAGES / "dark").iterdir()}
    assert dark.keys() == {one.name for one in photographs.IMAGES.glob("dashboard-*.png")}, AGAIN
    assert max(dark.values()) <= photographs.MOST_BYTES


def lasting(structure: dict[str, list[str]]) -> dict[str, list[str]]:
    """Of a heading its first word: what follows in it is the state of the moment."""
    return structure | {"headings": [one.split()[0] for one in structure["headings"]]}
