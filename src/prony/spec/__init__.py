"""What may be measured: master configs, runners, workloads, the matrix."""
