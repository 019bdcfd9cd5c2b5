"""The command ``trainmaster``. Exit codes: ``trainmaster_client.cli.app.ExitCode``."""

from trainmaster_client.cli.app import main

__all__ = ["main"]
