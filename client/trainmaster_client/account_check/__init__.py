"""Facts about AWS that the code relies on, which ``trainmaster account-check`` checks in a real account."""
