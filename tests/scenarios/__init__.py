"""Stories that a user could live through, told on a twin through the API alone."""
