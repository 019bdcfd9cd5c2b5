"""A CreateTrainingJob request: is it one, and what does it ask for?"""
