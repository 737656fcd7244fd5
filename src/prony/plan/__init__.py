"""What will run: points and deployments turned into jobs."""
