"""Pictures in docs/images show the pages as they are: headings, columns and landmarks are still theirs."""

import json

import pytest
from PIL import Image, ImageSequence

from demos.stage import approved_pages, photographs, recording
from demos.stage.dashboard_tab import PAGES
from tests.browser.conftest import OpenTab
from tests.browser.test_policy_replay import REPLAYS_MS

AGAIN = "the page is not the one photographed: python -m demos.dashboard --images docs/images"


@pytest.mark.thorough
@pytest.mark.parametrize(
    "picture", sorted(photographs.IMAGES.glob("dashboard-*.png")), ids=lambda one: one.stem
)
def test_a_picture_is_small_and_shows_the_page_as_it_is(picture, open_tab: OpenTab) -> None:
    assert picture.stat().st_size <= photographs.MOST_BYTES
    then = json.loads(picture.with_suffix(".json").read_text("utf-8"))
    tab = open_tab(viewport=photographs.VIEWPORT)
    name = picture.stem.removeprefix("dashboard-")
    path = photographs.PHOTOGRAPHED[name]
    photographs.show(tab, photographs.replayed(tab, patience_ms=REPLAYS_MS) if name == "what-if" else path)
    assert lasting(photographs.structure(tab)) == lasting(then), AGAIN


def test_each_page_has_a_picture() -> None:
    names = {
        picture.stem.removeprefix("dashboard-") for picture in photographs.IMAGES.glob("dashboard-*.png")
    }
    assert names == photographs.PHOTOGRAPHED.keys() >= set(PAGES), AGAIN


def test_each_page_has_an_approved_picture_in_each_window_and_the_sheet_is_small() -> None:
    names = {f"{name}-{view.name}" for name in photographs.PHOTOGRAPHED for view in photographs.VIEWS}
    assert approved_pages.read().thumbnails.keys() == names, approved_pages.APPROVE
    assert approved_pages.SHEET.stat().st_size <= photographs.MOST_BYTES


def test_the_recording_is_small_and_lasts_twenty_seconds() -> None:
    film = photographs.IMAGES / recording.NAME
    assert film.stat().st_size <= recording.MOST_BYTES
    with Image.open(film) as image:
        assert len(ImageSequence.all_frames(image)) >= len(recording.PAGES)


def test_each_picture_has_a_small_dark_copy_and_no_other_is_kept() -> None:
    dark = {one.name: one.stat().st_size for one in (photographs.IMAGES / "dark").iterdir()}
    assert dark.keys() == {one.name for one in photographs.IMAGES.glob("dashboard-*.png")}, AGAIN
    assert max(dark.values()) <= photographs.MOST_BYTES


def lasting(structure: dict[str, list[str]]) -> dict[str, list[str]]:
    """Of a heading its first word: what follows in it is the state of the moment."""
    return structure | {"headings": [one.split()[0] for one in structure["headings"]]}
