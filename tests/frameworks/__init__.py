"""Jobs with current frameworks."""
