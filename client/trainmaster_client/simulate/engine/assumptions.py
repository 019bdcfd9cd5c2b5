"""Lists what a replay assumes if the history does not tell, and what it leaves out."""

from datetime import timedelta

COLD_START = timedelta(minutes=4)
"""Time from the start of an attempt to Training on new instances, if the job's own is not known."""
LAUNCH = 0.7
"""Share of a start-up after which new instances are there: about where Downloading begins."""
WARM_START = timedelta(seconds=30)
"""Time from the start of an attempt to Training in a warm pool."""
RESTORE = timedelta(minutes=1)
"""Time to load a checkpoint, on top of a start-up."""
STOP = timedelta(seconds=90)
"""Time between a stop and free instances; SageMaker gives a job 120 s to save."""
REPLACED = timedelta(minutes=10)
"""Time until SageMaker has other instances after a spot interruption; start-up comes on top."""

ASSUMED = (
    "Start-up and stops take as long as the history shows, of the same attempt if it has one.",
    f"Where it shows none, start-up takes {COLD_START.seconds} s, in a warm pool {WARM_START.seconds} s.",
    f"To load a checkpoint takes {RESTORE.seconds} s more where the history shows nothing else.",
    f"A stop takes {STOP.seconds} s where it shows none.",
    "A job that is asked to stop loses what it lost then, else what came after its last checkpoint.",
    f"Interrupted on spot, it has other instances after {REPLACED.seconds // 60} minutes.",
    "Jobs of one team on the same instances can use each other's warm pools.",
)
"""Assumptions for people, as the reports print them."""

NOT_MODELLED = (
    "Users are as they were: nobody submits more, less or at other times because the waits are others.",
    "AWS has every instance of the pool at once: no capacity errors, no account limits, no throttled calls.",
    "A job trains as fast on whatever instances it gets, and as long as it did.",
    "Elastic jobs whose widths the source does not tell: each keeps the instances that it asked for.",
    "A job that failed for good fails for good again, after as much training, whatever the policy retries.",
    "Alternative instance types and InstancePreferences: a job asks for the instances that it had.",
    "Holds by users, changes of priority, pauses of the queue and changes of the policy during the period.",
    "Idle GPUs: a job that was stopped for them is stopped after as much training.",
    "Limits on waiting jobs and submissions (429), and training jobs that bypassed the queue.",
    "Reconciling runs on each whole minute, and a pass takes no time.",
)
"""Limits of the model, for people."""
