"""Pictures of pages, and beside each what stood on it: headings, columns and landmarks, figures left out."""

import io
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from demos.stage import night, sweep
from demos.stage.dashboard_tab import PAGES, Tab
from demos.stage.two_teams import BIG

Document = dict[str, Any]

IMAGES = Path(__file__).parents[2] / "docs/images"
PHOTOGRAPHED = {name: name for name in PAGES} | {
    "timeline": "timeline?span=1",
    "job": f"jobs/{night.LLAMA.name}",
    "array": f"arrays/{sweep.NAME}",
}
"""Path by the name of the picture."""
VIEWPORT = {"width": 1280, "height": 860}


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A window that pages are photographed in."""

    width: int
    height: int
    scheme: str

    @property
    def name(self) -> str:
        return f"{self.width}-{self.scheme}"

    @property
    def is_of_the_documents(self) -> bool:
        return (self.width, self.height) == (VIEWPORT["width"], VIEWPORT["height"])

    @property
    def options(self) -> dict[str, Any]:
        """Options of a browser's context: nothing moves, so that no picture is taken in between."""
        viewport = {"width": self.width, "height": self.height}
        return {"viewport": viewport, "color_scheme": self.scheme, "reduced_motion": "reduce"}


VIEWS = tuple(
    View(width=width, height=height, scheme=scheme)
    for width, height in ((400, 860), (1280, 860), (1920, 1080))
    for scheme in ("light", "dark")
)
"""Windows whose pictures are compared with the approved ones."""
MOST_BYTES = 150_000
"""Most bytes of a committed copy."""
_RESULT = "What would have been different"
_COLOURS = (256, 128, 64, 32, 16)
_FIGURES = re.compile(r"\d[\d,.:]*")
_STRUCTURE = """() => {
    const texts = (query) => [...document.querySelectorAll(query)].map((one) => one.innerText.trim());
    const query = "header, nav, main, footer, section, aside, form, [role=region]";
    const named = (one) =>
        [one.getAttribute("role") ?? one.tagName.toLowerCase(), one.getAttribute("aria-label")];
    return {
        headings: texts("main h1, main h2, main h3"),
        columns: texts("main thead th"),
        landmarks: [...document.querySelectorAll(query)].map((one) => named(one).filter(Boolean).join(" ")),
    };
}"""


def replayed(tab: Tab, *, patience_ms: float) -> str:
    """Run a replay on the page What-if, and return the path that shows its result."""
    tab.go("what-if")
    tab.page.get_by_role("button", name=f"Replay with one more {BIG} in").click()
    tab.page.get_by_role("heading", name=_RESULT).wait_for(timeout=patience_ms)
    return tab.page.url.partition("#/")[2]


def show(tab: Tab, path: str) -> None:
    tab.go(path)
    if "replay=" in path:
        tab.page.get_by_role("heading", name=_RESULT).wait_for()


def structure(tab: Tab) -> Document:
    texts_by_kind: dict[str, list[str]] = tab.page.evaluate(_STRUCTURE)
    return {name: [_FIGURES.sub("N", text) for text in texts] for name, texts in texts_by_kind.items()}


def keep_copies(pages: Sequence[Document], folder: Path = IMAGES) -> None:
    """Keep copies of few colours, small enough to be committed; beside the light ones the structure.

    Args:
        pages: What a walk says of each page.
        folder: Where the copies go.
    """
    (folder / "dark").mkdir(parents=True, exist_ok=True)
    for page in pages:
        picture, name = Path(page["picture"]), f"dashboard-{page['page']}"
        if page["view"] == f"{VIEWPORT['width']}-dark":
            (folder / "dark" / f"{name}.png").write_bytes(_reduced(picture))
        elif page["view"] == f"{VIEWPORT['width']}-light":
            (folder / f"{name}.png").write_bytes(_reduced(picture))
            text = json.dumps(page["structure"], indent=2, ensure_ascii=False)
            (folder / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")


def _reduced(picture: Path) -> bytes:
    image = Image.open(picture).convert("RGB")
    for colours in _COLOURS:
        written = io.BytesIO()
        image.quantize(colours).save(written, "PNG", optimize=True)
        if len(written.getvalue()) <= MOST_BYTES:
            return written.getvalue()
    raise RuntimeError(f"{picture}: no copy of it is below {MOST_BYTES} bytes")
