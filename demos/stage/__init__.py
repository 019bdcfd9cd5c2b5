"""The stage on which each demo is one file: twin, clock, screen, processes, patience, and what is checked."""
