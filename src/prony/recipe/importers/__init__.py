"""Launches that others wrote, read into recipes and verified by resolving them again."""
