"""Where a simulation's history comes from: an account's record, a file of it, a trace."""

from trainmaster_client.simulate.sources.account_export import Period
from trainmaster_client.simulate.sources.readers import (
    history_from_account,
    history_from_file,
    history_from_trace,
)

__all__ = ["Period", "history_from_account", "history_from_file", "history_from_trace"]
