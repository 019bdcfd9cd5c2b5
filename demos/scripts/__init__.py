"""`make demo-scripts`: scripts of Hugging Face's Trainer, Lightning and Accelerate, preempted and resumed."""
