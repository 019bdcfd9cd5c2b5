"""``trainmaster tensorboard``: TensorBoard on this machine, over what all attempts of a job wrote to S3.

Source of the folder: ``Estimator.latest_job_tensorboard_artifacts_path`` of the SageMaker SDK.
"""

import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NoReturn

import typer

from trainmaster_client.cli.connection import aws_session, connect
from trainmaster_client.cli.container_sessions import described, refuse
from trainmaster_client.cli.jobs import JobName
from trainmaster_client.cli.screen import print_json
from trainmaster_client.http.answers import printable
from trainmaster_client.jobs.job_views import JobView, job_view

PROGRAM = "tensorboard"
NO_OUTPUT = (
    "it has no TensorBoardOutputConfig, by which SageMaker copies what it writes to S3. It is set when a job"
    " is submitted: tensorboard_output_config=TensorBoardOutputConfig(s3_output_path=...) of an estimator."
    " Where the job serves TensorBoard itself: trainmaster forward"
)

LocalPort = Annotated[int, typer.Option(min=1, max=65_535, help="Port of this machine.")]
Print = Annotated[bool, typer.Option("--print", help="Only print the command; start nothing.")]
Json = Annotated[bool, typer.Option("--json", help="Print the command and its folders as JSON.")]


def folders(job: JobView, output: str) -> dict[str, str]:
    """Return the folder of each attempt's files, by a name for it such as ``attempt-1``."""
    names = {attempt.number: attempt.training_job_name for attempt in job.attempts}
    return {
        f"attempt-{number}": f"{output.rstrip('/')}/{name}/tensorboard-output"
        for number, name in sorted(names.items())
        if name
    }


def command(places: Mapping[str, str], port: int) -> list[str]:
    """Return the command that shows these folders, each as a group of runs by its name."""
    shown = ",".join(f"{name}:{place}" for name, place in places.items())
    return [PROGRAM, "--logdir_spec", shown, "--port", str(port)]


def tensorboard(
    job: JobName, *, port: LocalPort = 6006, print_: Print = False, as_json: Json = False
) -> None:
    """Show what all attempts of a job wrote for TensorBoard, also after its end. Needs TensorBoard here."""
    view = job_view(connect().job(job, estimate=False))
    output = _output(view)
    if "," in output:
        _refuse(view, f"TensorBoard cannot read {output}: it takes a comma for the end of a folder's name")
    if not output.startswith("s3://"):
        _refuse(view, f"TensorBoard cannot read {output}: only an S3OutputPath that begins with s3://")
    places = folders(view, output)
    line = command(places, port)
    if as_json:
        print_json({"command": line, "folders": places})
    elif print_:
        print(shlex.join(line))
    else:
        _run(line, view)


def _output(job: JobView) -> str:
    """Return the S3 URI of the job's request; ends the command where there is none."""
    if not any(attempt.training_job_name for attempt in job.attempts):
        _refuse(job, "it has not started yet")
    description: Mapping[str, Any] = described(aws_session(), job)
    output = printable((description.get("TensorBoardOutputConfig") or {}).get("S3OutputPath") or "")
    return output or _refuse(job, NO_OUTPUT)


def _run(line: Sequence[str], job: JobView) -> None:
    if shutil.which(PROGRAM) is None:
        _refuse(job, f"{PROGRAM} is not installed: pip install tensorboard boto3")
    raise typer.Exit(subprocess.run(line, check=False).returncode)  # noqa: S603  our own words, no shell


def _refuse(job: JobView, why: str) -> NoReturn:
    refuse(job, [why], what="TensorBoard of")
