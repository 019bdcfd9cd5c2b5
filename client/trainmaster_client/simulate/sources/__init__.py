"""The sources of a simulation's history: an account's record, a file of it, a trace, SageMaker itself."""

from trainmaster_client.simulate.sources.account_export import Period
from trainmaster_client.simulate.sources.readers import (
    history_from_account,
    history_from_file,
    history_from_trace,
)
from trainmaster_client.simulate.sources.reading_progress import Progress
from trainmaster_client.simulate.sources.sagemaker_history import SageMakerReading, history_from_sagemaker
from trainmaster_client.simulate.sources.sagemaker_reader import usual_cache

__all__ = [
    "Period",
    "Progress",
    "SageMakerReading",
    "history_from_account",
    "history_from_file",
    "history_from_sagemaker",
    "history_from_trace",
    "usual_cache",
]
