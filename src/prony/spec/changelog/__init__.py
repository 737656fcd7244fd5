"""The change log: an append-only YAML file whose added entries say which configs run; read, judged, mended, merged."""
