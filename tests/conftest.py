"""What holds for all tests."""

import gc
import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from botocore.loaders import create_loader

from tests.thirds import COSTS, named_third, read_costs, split

# Two workers share two cores. Threads of torch that wait for each other spin, here and in what tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")

with suppress(ModuleNotFoundError):  # the environment of tests/v3 has no Hypothesis and needs none
    from hypothesis import settings

    # The parent is said, as Hypothesis's own for CI=true would draw the same each time.
    # No deadline: a busy machine is no failure.
    usual = settings.get_profile("default")
    settings.register_profile("no-clock", usual, deadline=None, print_blob=True)
    settings.load_profile("no-clock")


@pytest.fixture(scope="session", autouse=True)
def service_models_are_parsed_once() -> Iterator[None]:
    """Megabytes of JSON: botocore keeps them for a session, and there are hundreds of sessions here."""
    kept: defaultdict[str | None, dict[Any, Any]] = defaultdict(dict)

    def sharing_loader(data_path: str | None = None) -> Any:
        loader: Any = create_loader(data_path)
        loader._cache = kept[data_path]
        return loader

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("botocore.session.create_loader", sharing_loader)
        yield


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out long tests that are not in the third that the environment names."""
    third = named_third(os.environ)
    if third is not None:
        items[:], left = split(items, third, read_costs(COSTS.read_text(encoding="utf-8")))
        config.hook.pytest_deselected(items=left)


def pytest_collection_finish() -> None:
    """The modules of all tests stay until the end: the collector need not walk them again and again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """By module, as ``loadscope`` says, but one worker has all that shares the twin of tests/browser."""
    if config.getoption("dist") != "loadscope":
        return None
    from xdist.scheduler import LoadScopeScheduling  # noqa: PLC0415  not in every environment

    class Scopes(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return "tests/browser" if nodeid.startswith("tests/browser/") else super()._split_scope(nodeid)

    return Scopes(config, log)
