"""What may be chosen: the words, how they are read, what cannot be meant together. No torch here."""
