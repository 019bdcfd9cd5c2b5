"""Options of ``trainmaster account-check``."""

from dataclasses import dataclass
from typing import Annotated

import typer


@dataclass(frozen=True, slots=True, kw_only=True)
class Lent:
    """Means that the user gives to the check: a role, a bucket, an image, a GPU type."""

    role: Annotated[
        str | None,
        typer.Option(help="ARN of a role that training jobs may run under.", envvar="TRAINMASTER_ROLE"),
    ] = None
    bucket: Annotated[
        str | None,
        typer.Option(help="Bucket that the role may write to.", envvar="TRAINMASTER_BUCKET"),
    ] = None
    image: Annotated[
        str | None,
        typer.Option(
            help="Training image with a shell; without it a public one of AWS, for PyTorch on CPUs."
        ),
    ] = None
    gpu: Annotated[
        str | None,
        typer.Option(metavar="TYPE", help="Also check what needs an accelerated type, such as ml.g5.xlarge."),
    ] = None
    plan: Annotated[
        str | None,
        typer.Option(
            metavar="ARN", help="Also check a job on this training plan, which must have an open window."
        ),
    ] = None
    starve: Annotated[
        bool, typer.Option("--starve", help="Also let a pending time of 30 minutes run out; needs --gpu.")
    ] = False
