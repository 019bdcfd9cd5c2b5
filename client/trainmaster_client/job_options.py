"""``job_tags``: job options as tags, for every SDK and boto3, where their users import it."""

from trainmaster_client.sdk.job_tags import JobOptions, Tag, job_tags

__all__ = ["JobOptions", "Tag", "job_tags"]
