"""What a container leaves: the model and other output in S3, and the reason it gives for its failure."""

import io
import tarfile
from pathlib import Path

from local.sagemaker.jobs import TrainingJob
from local.sagemaker.layout import Layout
from local.sagemaker.ports import ObjectStore
from local.sagemaker.s3_uri import S3Location

_FAILURE_LIMIT_CHARACTERS = 1024
"""Source: SageMaker developer guide, "How Amazon SageMaker Processes Training Output"."""


def upload(job: TrainingJob, layout: Layout, store: ObjectStore) -> None:
    """Model and output data. An empty folder leaves nothing in S3.

    Raises:
        FileNotFoundError: the bucket is gone.
    """
    if job.spec.output_is_compressed:
        _upload_archive(layout.model, job.model_artifacts, store)
    else:
        _upload_files(layout.model, job.model_artifacts, store)
    output = job.spec.output.child(job.name, "output", "output.tar.gz")
    _upload_archive(layout.output_data, output, store)


def failure_text(layout: Layout) -> str:
    """What the container wrote to /opt/ml/output/failure; empty when it wrote nothing."""
    try:
        with layout.failure.open(encoding="utf-8", errors="replace") as file:
            return file.read(_FAILURE_LIMIT_CHARACTERS)
    except OSError:
        return ""


def _upload_archive(folder: Path, target: S3Location, store: ObjectStore) -> None:
    if not any(folder.iterdir()):
        return
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w:gz") as tar:
        for path in sorted(folder.iterdir()):
            tar.add(path, arcname=path.name)
    store.write(target.bucket, target.key, body.getvalue())


def _upload_files(folder: Path, target: S3Location, store: ObjectStore) -> None:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            location = target.child(*path.relative_to(folder).parts)
            store.write(location.bucket, location.key, path.read_bytes())
