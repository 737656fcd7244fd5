"""What happened: event log, metric registry and definitions, results."""
