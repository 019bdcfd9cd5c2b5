"""What a replay assumes where the history does not say, and what it leaves out: every number and sentence."""

from datetime import timedelta

COLD_START = timedelta(minutes=4)
"""From the start of an attempt to Training on new instances, where the job's own is not known."""
LAUNCH = 0.7
"""Share of a start-up on new instances after which they are there: about where Downloading begins."""
WARM_START = timedelta(seconds=30)
"""The same in a warm pool."""
RESTORE = timedelta(minutes=1)
"""On top, to load a checkpoint."""
STOP = timedelta(seconds=90)
"""From a stop to the instant at which the instances are free; SageMaker gives a job 120 s to save."""
REPLACED = timedelta(minutes=10)
"""From a spot interruption until SageMaker has other instances; start-up comes on top."""

ASSUMED = (
    "Start-up and stops take as long as the history shows, of the same attempt if it has one.",
    f"Where it shows none, start-up takes {COLD_START.seconds} s, in a warm pool {WARM_START.seconds} s.",
    f"To load a checkpoint takes {RESTORE.seconds} s more where the history shows nothing else.",
    f"A stop takes {STOP.seconds} s where it shows none.",
    "A job that is asked to stop loses what it lost then, else what came after its last checkpoint.",
    f"Interrupted on spot, it has other instances after {REPLACED.seconds // 60} minutes.",
    "Jobs of one team on the same instances can use each other's warm pools.",
)
"""For people, as the reports print it."""

NOT_MODELLED = (
    "Users are as they were: nobody submits more, less or at other times because the waits are others.",
    "AWS has every instance of the pool at once: no capacity errors, no account limits, no throttled calls.",
    "A job trains as fast on whatever instances it gets, and as long as it did.",
    "A job that failed for good fails for good again, after as much training, whatever the policy retries.",
    "Alternative instance types and InstancePreferences: a job asks for the instances that it had.",
    "Holds by users, changes of priority, pauses of the queue and changes of the policy during the period.",
    "Idle GPUs: a job that was stopped for them is stopped after as much training.",
    "Limits on waiting jobs and submissions (429), and training jobs that bypassed the queue.",
    "Reconciling runs on each whole minute, and a pass takes no time.",
)
"""What is not in the model, for people."""
