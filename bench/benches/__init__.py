"""One module per bench; its function of the same name measures and returns rows."""
