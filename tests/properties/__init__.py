"""What holds of every plan, whatever pool it is made for."""
