"""The page and its API: the same answers over HTTP and frozen into one file."""
