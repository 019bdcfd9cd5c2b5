"""What ``trainmaster account-check`` asks a real account: every fact about AWS that the code stands on."""
