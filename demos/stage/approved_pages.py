"""The pictures of the dashboard's pages that somebody approved, and how far new ones are from them.

All lie in one file, a sheet of grey thumbnails that a reviewer can look at. A thumbnail has a cell for 8 by 8
pixels: it shows where text and boxes are, and hardly which digits a number has.
"""

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from PIL import Image, ImageChops, PngImagePlugin

SHEET = Path(__file__).parents[2] / "tests/browser/approved_pages.png"
APPROVE = "make demo-dashboard APPROVE=1"
CELL_PX = 8
GREYS = 16
"""Shades that are kept of a cell."""
CELL_TOLERANCE = 40
"""Difference of two cells, of 255, up to which they count as equal: another digit makes less, a line more."""
PAGE_TOLERANCE = 0.01
"""Share of the cells of a page that may differ while it counts as unchanged."""
_STEP = 255 // (GREYS - 1)
_TILES, _BROWSER = "tiles", "browser"
_SHEET_WIDTH = 960


@dataclass(frozen=True, slots=True, kw_only=True)
class PageChange:
    """A picture that is not the approved one."""

    name: str
    share: float
    """Share of the cells that differ; 1 where the picture is new, gone, or has another size."""
    where: str
    """The rectangle that holds all differences, in pixels of the screenshot."""

    def __str__(self) -> str:
        return f"{self.name}: {self.share:.1%} of it differ, {self.where}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovedPages:
    thumbnails: Mapping[str, Image.Image] = field(default_factory=dict)
    browser: str = ""
    """Version of the browser that made them."""

    def changes(self, pictures: Mapping[str, Image.Image]) -> list[PageChange]:
        """Compare thumbnails of new pictures by their names; the ones that changed most come first."""
        gone = [
            PageChange(name=name, share=1, where="it is approved, and there is no such page now")
            for name in self.thumbnails.keys() - pictures.keys()
        ]
        changes = [self._change(name, picture) for name, picture in pictures.items()]
        beyond = [change for change in changes if change.share > PAGE_TOLERANCE]
        return sorted([*gone, *beyond], key=lambda change: (-change.share, change.name))

    def _change(self, name: str, picture: Image.Image) -> PageChange:
        approved = self.thumbnails.get(name)
        if approved is None:
            return PageChange(name=name, share=1, where="it is new: nobody approved a picture of it")
        if approved.size != picture.size:
            return PageChange(name=name, share=1, where="its window has another size")
        differs = ImageChops.difference(approved, picture).point(lambda grey: 255 * (grey > CELL_TOLERANCE))
        share = differs.histogram()[255] / (differs.width * differs.height)
        return PageChange(name=name, share=share, where=_place(differs.getbbox()))


def thumbnail(picture: Path) -> Image.Image:
    """Return the picture in grey, a cell for each 8 by 8 pixels."""
    with Image.open(picture) as image:
        cells = -(-image.width // CELL_PX), -(-image.height // CELL_PX)
        small = image.convert("L").resize(cells, Image.Resampling.BOX)
    return small.point(lambda grey: _STEP * round(grey / _STEP))


def read(sheet: Path = SHEET) -> ApprovedPages:
    """Read the sheet; without the file nothing is approved yet."""
    if not sheet.exists():
        return ApprovedPages()
    with Image.open(sheet) as image:
        texts, grey = dict(image.info), image.convert("L")
    boxes: Mapping[str, Sequence[int]] = json.loads(texts[_TILES])
    tiles = {
        name: grey.crop((left, top, left + width, top + height))
        for name, (left, top, width, height) in boxes.items()
    }
    return ApprovedPages(thumbnails=tiles, browser=texts[_BROWSER])


def approve(pages: ApprovedPages, sheet: Path = SHEET) -> None:
    """Write the sheet, in rows by the names of the pictures."""
    boxes = _boxes(pages.thumbnails)
    height = max((top + height for _, top, _, height in boxes.values()), default=1)
    image = Image.new("L", (_SHEET_WIDTH, height), 255)
    for name, (left, top, _, _) in boxes.items():
        image.paste(pages.thumbnails[name], (left, top))
    indexed = image.point(lambda grey: round(grey / _STEP)).convert("P")
    indexed.putpalette([grey for level in range(GREYS) for grey in [_STEP * level] * 3])
    texts = PngImagePlugin.PngInfo()
    texts.add_text(_TILES, json.dumps(boxes))
    texts.add_text(_BROWSER, pages.browser)
    written = io.BytesIO()
    indexed.save(written, "PNG", optimize=True, bits=4, pnginfo=texts)
    sheet.write_bytes(written.getvalue())


def _boxes(tiles: Mapping[str, Image.Image]) -> dict[str, tuple[int, int, int, int]]:
    """Lay the tiles out from left to right in rows as high as their highest."""
    boxes: dict[str, tuple[int, int, int, int]] = {}
    left = top = row = 0
    for name, tile in sorted(tiles.items()):
        if left + tile.width > _SHEET_WIDTH:
            left, top, row = 0, top + row, 0
        boxes[name] = (left, top, tile.width, tile.height)
        left, row = left + tile.width, max(row, tile.height)
    return boxes


def _place(box: tuple[int, int, int, int] | None) -> str:
    if box is None:
        return "nothing of it"
    left, top, right, bottom = (CELL_PX * side for side in box)
    return f"between ({left}, {top}) and ({right}, {bottom})"
