"""The processes that train together: how they meet, what they run on, how the model lies among them."""
