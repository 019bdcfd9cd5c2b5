"""Hyperparameter tuning whose trials are jobs of the queue; the study is one object in S3."""
