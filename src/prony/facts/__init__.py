"""Facts with a source each: accelerators and serving frameworks that results may name."""
