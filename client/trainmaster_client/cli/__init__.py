"""The command ``trainmaster``. Exit codes: ``trainmaster_client.cli.exit_codes.ExitCode``."""

import sys

_INTERRUPTED = 130


def main() -> None:
    """The entry point. The commands are imported in it, so that Ctrl-C at that time is no traceback."""
    try:
        from trainmaster_client.cli.app import main as run  # noqa: PLC0415

        run()
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)


__all__ = ["main"]
