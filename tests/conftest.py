"""What holds for all tests."""

from hypothesis import settings

settings.register_profile("no-clock", deadline=None, print_blob=True)  # a busy machine is no failure
settings.load_profile("no-clock")
