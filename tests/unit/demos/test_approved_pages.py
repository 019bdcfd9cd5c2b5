"""Pictures of pages are compared cell by cell with those that somebody approved."""

from pathlib import Path

import pytest
from PIL import Image, ImageDraw

from demos.stage.approved_pages import CELL_PX, PAGE_TOLERANCE, ApprovedPages, approve, read, thumbnail

WIDTH, HEIGHT = 400, 320
CELLS = WIDTH // CELL_PX * (HEIGHT // CELL_PX)


def picture(folder: Path, *boxes: tuple[int, int, int, int], grey: int = 0, size: int = WIDTH) -> Image.Image:
    """Draw a white page with filled boxes, and return it as it is compared."""
    image = Image.new("RGB", (size, HEIGHT), "white")
    for box in boxes:
        ImageDraw.Draw(image).rectangle(box, fill=(grey, grey, grey))
    path = folder / "page.png"
    image.save(path)
    return thumbnail(path)


TABLE = (40, 80, 359, 239)


def test_a_page_that_is_as_it_was_has_not_changed(tmp_path: Path) -> None:
    approved = ApprovedPages(thumbnails={"now": picture(tmp_path, TABLE)})
    assert approved.changes({"now": picture(tmp_path, TABLE)}) == []


def test_other_digits_in_one_place_are_within_the_tolerance(tmp_path: Path) -> None:
    approved = ApprovedPages(thumbnails={"now": picture(tmp_path, TABLE)})
    digits = (8, 8, 8 + 5 * CELL_PX - 1, 8 + 2 * CELL_PX - 1)
    assert 5 * 2 / CELLS < PAGE_TOLERANCE
    assert approved.changes({"now": picture(tmp_path, TABLE, digits)}) == []


def test_a_fainter_text_all_over_the_page_is_within_the_tolerance(tmp_path: Path) -> None:
    approved = ApprovedPages(thumbnails={"now": picture(tmp_path, TABLE, grey=100)})
    assert approved.changes({"now": picture(tmp_path, TABLE, grey=120)}) == []


def test_a_row_that_moved_is_a_change_and_it_is_said_where(tmp_path: Path) -> None:
    row, below = (40, 40, 359, 63), (40, 104, 359, 127)
    approved = ApprovedPages(thumbnails={"now": picture(tmp_path, row)})
    (change,) = approved.changes({"now": picture(tmp_path, below)})
    assert change.share == pytest.approx(2 * 40 * 3 / CELLS)
    assert str(change) == "now: 12.0% of it differ, between (40, 40) and (360, 128)"


def test_a_new_page_a_lost_one_and_one_of_another_size_are_changes(tmp_path: Path) -> None:
    approved = ApprovedPages(thumbnails={"gone": picture(tmp_path), "wider": picture(tmp_path)})
    changes = approved.changes({"new": picture(tmp_path), "wider": picture(tmp_path, size=WIDTH + 80)})
    assert [(change.name, change.where) for change in changes] == [
        ("gone", "it is approved, and there is no such page now"),
        ("new", "it is new: nobody approved a picture of it"),
        ("wider", "its window has another size"),
    ]


def test_what_was_approved_is_read_as_it_was_written(tmp_path: Path) -> None:
    pages = {f"page-{number}": picture(tmp_path, TABLE, grey=40 * number) for number in range(6)}
    pages["wide"] = picture(tmp_path, TABLE, size=4 * WIDTH)
    sheet = tmp_path / "sheet.png"
    approve(ApprovedPages(thumbnails=pages, browser="150.0"), sheet)
    again = read(sheet)
    assert again.browser == "150.0"
    assert {name: page.tobytes() for name, page in again.thumbnails.items()} == {
        name: page.tobytes() for name, page in pages.items()
    }


def test_without_a_sheet_nothing_is_approved(tmp_path: Path) -> None:
    assert read(tmp_path / "none.png") == ApprovedPages()
