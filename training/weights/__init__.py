"""Weights leave as safetensors in Hugging Face's Llama layout, and training may start from such.

The format is written and read here, not by the library of its name: it is a small header before plain
numbers, a job needs no package for it, and no more than one parameter is ever in the host's memory.
"""

from training.weights.exporting import export_weights
from training.weights.importing import load_weights

__all__ = ["export_weights", "load_weights"]
