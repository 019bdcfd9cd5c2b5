"""Replays of past jobs: pure, with no clock, file, process or chance of its own."""
