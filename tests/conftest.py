"""What holds for all tests."""

from contextlib import suppress

with suppress(ModuleNotFoundError):  # the environment of tests/v3 has no Hypothesis and needs none
    from hypothesis import settings

    settings.register_profile("no-clock", deadline=None, print_blob=True)  # a busy machine is no failure
    settings.load_profile("no-clock")
