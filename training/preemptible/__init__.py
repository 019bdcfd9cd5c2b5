"""Saves, stops and resumes any script; imports nothing else of `training`, and is copied as one folder."""
