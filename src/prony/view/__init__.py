"""Rows turned into what people see: series, frontiers, charts, tables. Pure; every number on a page is made here."""
