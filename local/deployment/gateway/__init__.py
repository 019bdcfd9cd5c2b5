"""API Gateway: routes, resource policy and proxy events of the stack's REST API."""
