"""Runs jobs: job folder, launch, supervisor, executors, sweep controller."""
