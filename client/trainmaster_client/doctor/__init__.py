"""The checks of ``trainmaster doctor``, from the configuration to the account, and its verdicts."""
