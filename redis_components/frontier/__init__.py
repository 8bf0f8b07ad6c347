"""The frontier: leases requests, batches writes, sends one atomic exchange after another."""
