"""What is known: results kept for good, what was ingested from where, and what could not be mapped."""
