"""Pictures of pages, and beside each what stood on it: headings, columns and landmarks, figures left out."""

import io
import json
import re
from pathlib import Path
from typing import Any

from PIL import Image

from demos.stage import night
from demos.stage.dashboard_tab import PAGES, Tab

Document = dict[str, Any]

IMAGES = Path(__file__).parents[2] / "docs/images"
PHOTOGRAPHED = {name: name for name in PAGES} | {
    "timeline": "timeline?span=1",
    "job": f"jobs/{night.LLAMA.name}",
}
"""Path by the name of the picture."""
VIEWPORT = {"width": 1280, "height": 860}
MOST_BYTES = 150_000
"""Most bytes of a committed copy."""
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


def structure(tab: Tab) -> Document:
    texts_by_kind: dict[str, list[str]] = tab.page.evaluate(_STRUCTURE)
    return {name: [_FIGURES.sub("N", text) for text in texts] for name, texts in texts_by_kind.items()}


def keep_copy(picture: Path, *, name: str, scheme: str, structure: Document, folder: Path = IMAGES) -> None:
    """Keep a copy of few colours, small enough to be committed; beside the light one the structure."""
    _reduce(picture, (folder / "dark" if scheme == "dark" else folder) / f"dashboard-{name}.png")
    if scheme == "light":
        text = json.dumps(structure, indent=2, ensure_ascii=False)
        (folder / f"dashboard-{name}.json").write_text(f"{text}\n", encoding="utf-8")


def _reduce(picture: Path, copy: Path) -> None:
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_bytes(_reduced(picture))


def _reduced(picture: Path) -> bytes:
    image = Image.open(picture).convert("RGB")
    for colours in _COLOURS:
        written = io.BytesIO()
        image.quantize(colours).save(written, "PNG", optimize=True)
        if len(written.getvalue()) <= MOST_BYTES:
            return written.getvalue()
    raise RuntimeError(f"{picture}: no copy of it is below {MOST_BYTES} bytes")
