"""What a user of trainmaster installs: the SageMaker SDK session, the API client, the command line."""
