"""Stores what the containers of a job leave: model and other output in S3, and the reason for a failure."""

import io
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from local.sagemaker.jobs import FAILURE_REASON_CHARACTERS, TrainingJob
from local.sagemaker.layout import Layout
from local.sagemaker.ports import ObjectStore
from local.sagemaker.s3_uri import S3Location


def upload(job: TrainingJob, layouts: Sequence[Layout], store: ObjectStore) -> None:
    """Upload model and output data of all hosts together. Empty folders leave nothing in S3.

    Raises:
        FileNotFoundError: the bucket is gone.
    """
    model = _together([layout.model for layout in layouts])
    if job.spec.output_is_compressed:
        _upload_archive(model, job.model_artifacts, store)
    else:
        _upload_files(model, job.model_artifacts, store)
    output = job.spec.output.child(job.name, "output", "output.tar.gz")
    _upload_archive(_together([layout.output_data for layout in layouts]), output, store)


def failure_text(layout: Layout) -> str:
    """Return the text of /opt/ml/output/failure; empty if the container wrote none."""
    try:
        with layout.failure.open(encoding="utf-8", errors="replace") as file:
            return file.read(FAILURE_REASON_CHARACTERS)
    except OSError:
        return ""


def _together(folders: Sequence[Path]) -> dict[str, Path]:
    """Map names to paths over all folders; a name that several hosts use is the first host's."""
    by_name: dict[str, Path] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            by_name.setdefault(path.relative_to(folder).as_posix(), path)
    return by_name


def _upload_archive(content: Mapping[str, Path], target: S3Location, store: ObjectStore) -> None:
    if not content:
        return
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w:gz") as tar:
        for name, path in content.items():
            tar.add(path, arcname=name, recursive=False)
    store.write(target.bucket, target.key, body.getvalue())


def _upload_files(content: Mapping[str, Path], target: S3Location, store: ObjectStore) -> None:
    for name, path in content.items():
        if path.is_file():
            location = target.child(name)
            store.write(location.bucket, location.key, path.read_bytes())
