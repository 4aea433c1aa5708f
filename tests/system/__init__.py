"""Real processes, namespaces and kill -9."""
