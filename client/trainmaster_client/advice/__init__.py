"""Everything ``trainmaster advise`` computes: the shapes a job could run in, and what speaks for each."""
