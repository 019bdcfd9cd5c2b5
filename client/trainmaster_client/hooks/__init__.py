"""Hooks that intercept the calls of boto3 clients, so that the jobs of the queue answer them."""
