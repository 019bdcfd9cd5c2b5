"""A report of ``trainmaster account-check`` beside the harsh world of the twin."""
