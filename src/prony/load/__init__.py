"""The wire client: drives load and writes the event log."""
