"""The deployment of the stack into the twin: template, resources, functions and what triggers them."""
