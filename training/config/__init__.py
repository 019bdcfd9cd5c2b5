"""What may be chosen: the options and their words, the shapes they name, what cannot be meant together.

No torch here: options are read, and may be refused, before it is loaded.
"""

from training.config.reading import read_config
from training.config.train_config import TrainConfig

__all__ = ["TrainConfig", "read_config"]
