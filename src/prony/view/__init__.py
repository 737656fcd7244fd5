"""Rows turned into series, frontiers and tables; pure."""
