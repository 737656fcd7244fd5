"""Checks of a change before it costs anything: lint, matrix diff, and the one command before a push."""
