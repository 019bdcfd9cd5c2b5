"""Where a SageMaker input channel is on this host."""

from collections.abc import Mapping
from pathlib import Path

from training.errors import ConfigError

PREFIX = "channel:"
_VARIABLE = "SM_CHANNEL_"


def directory_of(source: str, env: Mapping[str, str], *, option: str) -> Path:
    """Of ``channel:NAME`` the channel's directory; anything else is a directory itself.

    Raises:
        ConfigError: The job has no such channel; ``option`` is the one that named it.
    """
    if not source.startswith(PREFIX):
        return Path(source)
    name = source.removeprefix(PREFIX)
    found = env.get(_VARIABLE + name.upper())
    if found is None:
        there = sorted(key.removeprefix(_VARIABLE).lower() for key in env if key.startswith(_VARIABLE))
        raise ConfigError(
            [f"{option} names channel {name!r}, but the job has {', '.join(there) or 'no channels'}"]
        )
    return Path(found)
