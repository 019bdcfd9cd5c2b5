"""Log lines of jobs, read from CloudWatch Logs over all attempts."""
