"""What is remembered of pools after it is over: records, what they follow from, and sums over them."""
