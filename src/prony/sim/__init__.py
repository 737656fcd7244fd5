"""The simulated engine: an OpenAI-compatible server with known timing and faults on demand."""
