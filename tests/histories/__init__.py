"""Random schedules: the real handlers over in-memory ports, interleaved call by call, with faults.

A seed is one history. Play one again: ``python -m tests.histories --seed 17 --trace``.
"""
