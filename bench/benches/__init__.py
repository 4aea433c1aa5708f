"""A module for each bench, whose function of the same name measures and returns rows."""
