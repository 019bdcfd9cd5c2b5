"""All signatures, the more particular before the more general: for a line the first one counts."""

from trainmaster.core.diagnosis import signatures_environment as surroundings
from trainmaster.core.diagnosis import signatures_platform as platform
from trainmaster.core.diagnosis import signatures_program as program
from trainmaster.core.diagnosis import signatures_resources as resources

SIGNATURES = (
    *platform.SERVICE,
    *platform.CAPACITY,
    *platform.HARDWARE,
    *resources.FILES,
    *resources.GPU_OOM,
    *resources.HOST_OOM,
    *resources.DISK_FULL,
    *surroundings.IMAGE,
    *platform.OTHER_HOSTS,
    *surroundings.DATA_ACCESS,
    *program.PARTICULAR,
    *platform.NETWORK,
    *platform.UNHANDLED_CUDA,
    *program.GENERAL,
)
