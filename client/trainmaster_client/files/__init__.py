"""Files of the user: secrets written for nobody else, documents read with bounds."""
