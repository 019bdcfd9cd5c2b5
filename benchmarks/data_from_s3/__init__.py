"""Readers of training data in S3, side by side: `python -m benchmarks.data_from_s3`."""
