"""Vocabulary that every layer shares: frozen models, findings, errors, clocks, units, YAML with line marks."""
