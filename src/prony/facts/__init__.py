"""Facts about models and SKUs, each with a source."""
