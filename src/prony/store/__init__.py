"""What is known: append-only results in SQL."""
