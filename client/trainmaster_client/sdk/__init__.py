"""The SageMaker SDKs: the session of v2, the trainer of v3, and job options as tags."""
