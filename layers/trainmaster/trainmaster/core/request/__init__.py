"""CreateTrainingJob requests: whether a body is one, and what it asks for."""
