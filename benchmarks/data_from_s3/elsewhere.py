"""Lists what is measured on AWS alone, and what others have published."""

from trainmaster_client.report import Report

PUBLISHED = {
    "Mountpoint for Amazon S3": 0.11,
    "goofys": 0.08,
}
"""Seconds for a small sample, as the articles on file clients for S3 give them, with files of their own."""

_MEASURE = "PYTHONPATH=client:. python -m benchmarks.data_from_s3"
PREPARE = f"{_MEASURE} --write build/from-s3 && aws s3 sync build/from-s3 s3://MY-BUCKET"
"""The files that all of these read."""
_JOB = (
    "run in a training job with the channel `bench` = s3://MY-BUCKET and InputMode {mode}: "
    f'{_MEASURE} --mount "$SM_CHANNEL_BENCH" --json /opt/ml/model/data.json'
)
ON_AWS = {
    "file-mode": _JOB.format(mode="File"),
    "fast-file-mode": _JOB.format(mode="FastFile"),
    "mountpoint": "run on an instance with mount-s3: mount-s3 MY-BUCKET /mnt/s3 --read-only && "
    f"{_MEASURE} --mount /mnt/s3",
    "amazon-s3": f"run on an instance: {_MEASURE} --bucket MY-BUCKET",
}


def skip_all(report: Report) -> None:
    for check, command in ON_AWS.items():
        report.skip(check, reason=f"needs AWS. First: {PREPARE}. Then {command}")
