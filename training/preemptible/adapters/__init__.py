"""Scripts of other libraries, made preemptible: one module a library, which alone imports it.

``hf_trainer`` is for Hugging Face's Trainer, ``lightning_trainer`` for Lightning, ``accelerate_loop`` for
loops with Accelerate. Each works over ``attempts``;
the script is started by ``launch.py``. Guide: docs/training/scripts.md.
"""
