"""What ``trainmaster advise`` knows: the shapes that a job could run in, and what speaks for each."""
