"""Errors of a deployment that a user can cure by changing the template, a parameter or a file."""

from pathlib import Path


class DeploymentError(Exception):
    """The twin cannot deploy what it was given; the text is one line for the user."""


class StateInUseError(DeploymentError):
    """Another twin lives on the state folder."""

    def __init__(self, folder: Path, pid: str) -> None:
        super().__init__(
            f"the state folder {folder} is in use by the twin with the process id {pid}; "
            "end that one, or choose another folder with --state"
        )


class TemplateError(DeploymentError):
    """The template uses something the twin does not know, or contradicts itself."""

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f"template: {where}: {problem}")
        self.where = where
        self.problem = problem


class ParameterError(DeploymentError):
    """A stack parameter is unknown, missing or has a value that its declaration does not allow."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"parameter {name}: {problem}")
        self.name = name
        self.problem = problem
