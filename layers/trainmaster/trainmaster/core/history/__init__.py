"""The history of pools: its records, how they follow from changes, and sums over them."""
