"""What each step trains on: a function of (seed, step, rank), wherever the tokens lie."""

from training.data.batches import Batches, Corpus
from training.data.opening import open_corpus
from training.data.prefetch import BatchSource, prefetched
from training.data.synthetic import SyntheticLanguage

__all__ = ["BatchSource", "Batches", "Corpus", "SyntheticLanguage", "open_corpus", "prefetched"]
