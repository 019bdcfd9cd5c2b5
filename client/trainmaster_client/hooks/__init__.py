"""What intercepts the calls of boto3 clients, so that jobs of the queue answer them."""
