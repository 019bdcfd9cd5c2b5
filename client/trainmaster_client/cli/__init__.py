"""The command ``trainmaster``. Exit codes: ``trainmaster_client.cli.exit_codes.ExitCode``."""

import sys

_INTERRUPTED = 130


def main() -> None:
    """Run the command line. Commands are imported here, so that Ctrl-C meanwhile gives no traceback."""
    try:
        from trainmaster_client.cli.app import main as run  # noqa: PLC0415

        run()
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)


__all__ = ["main"]
