"""Places where a job can run."""
