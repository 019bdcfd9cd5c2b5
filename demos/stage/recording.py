"""Records twenty seconds of the dashboard as an animated picture: questions of a morning, with captions."""

import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from PIL import Image
from playwright.sync_api import Locator, Page

from demos.stage import night, photographs
from demos.stage.dashboard_tab import Tab

NAME = "dashboard.webp"
MOST_BYTES = 400_000
"""Most bytes of the committed recording."""
VIEWPORT = {"width": 1100, "height": 690}
PAGES = {
    "timeline": ("Timeline: a preemption, a failure, warm pools, and the starts ahead", 2.5, "main"),
    "job": ("A job: its attempts, its loss, its GPU use", 2, "section[aria-label='Story']"),
    "array": ("A sweep: the best task, and what failed, by class", 2.5, "main"),
    "money": ("Money: what it cost, by team and by cause", 2, "main"),
    "what-if": (
        "What if there were one instance more? The last two weeks, replayed",
        2.5,
        "section[aria-labelledby='policy-replay']",
    ),
}
"""Pages after the queue: caption, seconds, and the part at the top of the window."""
_TIMES = 3
"""Times that it plays; then it rests, as nothing should move in sight of a reader for long."""
_SETTLES_MS = 600
"""Milliseconds that a drawer or a curve needs to be there."""
_QUALITY = 62
_CAPTION = """(text) => {
    const there = document.getElementById("caption");
    const caption = there ?? document.body.appendChild(document.createElement("div"));
    Object.assign(caption, {id: "caption", textContent: text, popover: "manual"});
    Object.assign(caption.style, {
        position: "fixed", inset: "auto 0 0 0", width: "100%", margin: "0", border: "0", padding: "14px 24px",
        background: "#14181d", color: "#ffffff", font: "500 20px Inter", textAlign: "center",
    });
    caption.hidePopover();
    caption.showPopover();
}"""
_POINT = """(element) => {
    const {left, top, width, height} = element.getBoundingClientRect();
    const ring = document.body.appendChild(document.createElement("div"));
    Object.assign(ring, {id: "ring", popover: "manual"});
    Object.assign(ring.style, {
        position: "fixed", inset: "auto", left: `${left - 5}px`, top: `${top - 5}px`,
        width: `${width + 10}px`, height: `${height + 10}px`, margin: "0",
        border: "4px solid #d55e00", borderRadius: "10px", background: "none", boxSizing: "border-box",
    });
    ring.showPopover();
}"""
_UNPOINT = "() => document.getElementById('ring')?.remove()"


class OpensTab(Protocol):
    def __call__(self, **options: Any) -> AbstractContextManager[Tab]: ...  # noqa: ANN401  of a context


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A picture with its caption."""

    caption: str
    seconds: float
    reach: Callable[[Page], object]
    """Does what somebody does to see it."""
    points_at: Callable[[Page], Locator] | None = None
    """Finds the element that gets a ring around it, as the next click goes there."""


def _row(page: Page) -> Locator:
    return page.locator("main tbody tr", has=page.locator(f"a[href$='{night.LLAMA.name}']"))


def _priority(page: Page) -> Locator:
    return page.locator(".drawer").get_by_role("button", name="Priority")


def _goes_to(path: str, top: str = "main") -> Callable[[Page], None]:
    """Return what goes to a page, and scrolls to a part of it."""

    def go(page: Page) -> None:
        page.keyboard.press("Escape")  # closes a dialog of the scene before
        photographs.show(Tab(page=page, context=page.context), path)
        page.locator(top).first.evaluate("(element) => element.scrollIntoView()")

    return go


def _queue_scenes() -> Iterator[Scene]:
    yield Scene(
        caption="Now: what runs, what waits, and when it is likely to start",
        seconds=3,
        reach=_goes_to("now"),
        points_at=_row,
    )
    yield Scene(
        caption="One click: who holds what it needs, until when, and what would help",
        seconds=3,
        reach=lambda page: _row(page).click(position={"x": 300, "y": 12}),
        points_at=_priority,
    )
    yield Scene(
        caption="A change says first what it would do: here by a dry run",
        seconds=2.5,
        reach=lambda page: _priority(page).click(),
    )


def _scenes(paths: Mapping[str, str]) -> Iterator[Scene]:
    yield from _queue_scenes()
    for name, (caption, seconds, top) in PAGES.items():
        yield Scene(caption=caption, seconds=seconds, reach=_goes_to(paths[name], top))


def record(opened: OpensTab, paths: Mapping[str, str]) -> bytes:
    """Play the scenes, and return them as an animated picture.

    Args:
        opened: Opens a tab of a dashboard that allows changes.
        paths: Path of each page.
    """
    frames: list[Image.Image] = []
    durations: list[int] = []
    with opened(viewport=VIEWPORT, reduced_motion="reduce") as tab:
        for scene in _scenes(paths):
            scene.reach(tab.page)
            tab.page.wait_for_timeout(_SETTLES_MS)
            tab.page.evaluate(_CAPTION, scene.caption)
            if scene.points_at is not None:
                scene.points_at(tab.page).evaluate(_POINT)
            frames.append(Image.open(io.BytesIO(tab.page.screenshot())).convert("RGB"))
            durations.append(round(1000 * scene.seconds))
            tab.page.evaluate(_UNPOINT)
    return animated(frames, durations)


def animated(frames: list[Image.Image], durations_ms: list[int]) -> bytes:
    """Return WebP with a frame for each picture."""
    written = io.BytesIO()
    frames[0].save(
        written, "WEBP", save_all=True, append_images=frames[1:], duration=durations_ms, loop=_TIMES,
        quality=_QUALITY, method=6, minimize_size=True,
    )  # fmt: skip
    return written.getvalue()


def keep(film: bytes, folder: Path = photographs.IMAGES) -> None:
    """Write the recording beside the pictures. Raises ValueError if it is too large to be committed."""
    if len(film) > MOST_BYTES:
        raise ValueError(f"{NAME}: {len(film):,} bytes, at most {MOST_BYTES:,} are committed")
    (folder / NAME).write_bytes(film)
