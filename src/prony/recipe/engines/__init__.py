"""One pure renderer per engine: typed intent to argv and env."""
