"""What holds for all tests."""

import gc
from contextlib import suppress

with suppress(ModuleNotFoundError):  # the environment of tests/v3 has no Hypothesis and needs none
    from hypothesis import settings

    # The parent is said, as Hypothesis's own for CI=true would draw the same each time.
    # No deadline: a busy machine is no failure.
    usual = settings.get_profile("default")
    settings.register_profile("no-clock", usual, deadline=None, print_blob=True)
    settings.load_profile("no-clock")


def pytest_collection_finish() -> None:
    """The modules of all tests stay until the end: the collector need not walk them again and again."""
    gc.collect()
    gc.freeze()
