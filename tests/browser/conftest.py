"""One twin with the demo's world, a dashboard on it, and tabs of Chromium.

Without Chromium, or without axe-core for its tests, they are skipped with the reason; with CI=true they fail.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from playwright.sync_api import Browser

from demos.stage import chromium, night
from demos.stage.dashboard_tab import Dashboard, Tab, new_tab, running_dashboard
from demos.stage.two_teams import World, running_world

OpenTab: TypeAlias = Callable[..., Tab]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    world: World
    reading: Dashboard
    """An admin's, as it starts by default."""
    changing: Dashboard
    """Somebody's of team language, started with --allow-changes."""


def unless_there(why: str | None) -> None:
    """Skips with the reason what this machine has not; where CI=true it has to have it."""
    if why is None:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(f"{why}; with CI=true these tests have to run")
    pytest.skip(why)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Playwright keeps an event loop running meanwhile: tests of other modules may need one of their own."""
    unless_there(chromium.why_not())
    with chromium.running_browser() as found:
        yield found


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    unless_there(chromium.why_not())
    folder: Path = tmp_path_factory.mktemp("dashboard")
    with ExitStack() as until_the_end:
        world = until_the_end.enter_context(running_world(folder))
        night.play(world)
        reading = running_dashboard(folder / "reading", world.environment_of(None))
        changing = running_dashboard(folder / "changing", world.environment_of("language"), "--allow-changes")
        yield Stage(
            world=world,
            reading=until_the_end.enter_context(reading),
            changing=until_the_end.enter_context(changing),
        )


@pytest.fixture
def open_tab(browser: Browser, stage: Stage) -> Iterator[OpenTab]:
    """A tab that shows the reading dashboard, or what its arguments say."""
    with ExitStack() as until_the_end:

        def opened(dashboard: Dashboard | None = None, link: str | None = None, **options: Any) -> Tab:
            tab = until_the_end.enter_context(new_tab(browser, now=stage.world.now(), **options))
            tab.open(link or (dashboard or stage.reading).link())
            return tab

        yield opened


@pytest.fixture
def tab(open_tab: OpenTab) -> Iterator[Tab]:
    """Whose console stays empty, whose policy is kept, and in which no dialog opens."""
    found = open_tab()
    yield found
    assert (found.errors, found.refused, found.violations(), found.dialogs) == ([], [], [], [])
