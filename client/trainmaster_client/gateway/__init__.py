"""The local gateway: SageMaker's endpoint on this machine, with the queue behind it, for any program."""
