"""The tests. A package of its own, because a dependency installs one of the same name."""
