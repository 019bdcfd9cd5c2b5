"""Which messages a training job heeds in each status, and what comes after a wait without one."""

from collections.abc import Mapping

from local.sagemaker.mailbox import Exited, Fail, HostFailed, Interrupt, Kinds, Stop, WindowClosed
from local.sagemaker.statuses import Secondary

_WITHOUT_CONTAINERS: Kinds = (Stop, Fail)

HEEDED: Mapping[Secondary, Kinds] = {
    Secondary.STARTING: _WITHOUT_CONTAINERS,
    Secondary.PENDING: _WITHOUT_CONTAINERS,
    Secondary.INTERRUPTED: _WITHOUT_CONTAINERS,
    Secondary.RESTARTING: _WITHOUT_CONTAINERS,
    Secondary.DOWNLOADING: (Stop, Fail, Interrupt, WindowClosed),
    Secondary.TRAINING: (Stop, Fail, Interrupt, WindowClosed, HostFailed, Exited),
    # Without containers; the last words of those that were taken away mean nothing any more.
    Secondary.STOPPING: (Fail,),
    Secondary.UPLOADING: (Fail,),
}
"""Messages that a job heeds in each status."""

AFTER_WAIT: Mapping[Secondary, Secondary] = {
    Secondary.STARTING: Secondary.PENDING,
    Secondary.DOWNLOADING: Secondary.TRAINING,
    Secondary.INTERRUPTED: Secondary.RESTARTING,
    Secondary.RESTARTING: Secondary.DOWNLOADING,
}
