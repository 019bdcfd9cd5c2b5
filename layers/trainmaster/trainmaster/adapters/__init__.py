"""The ports over AWS: the only users of boto3."""
