"""A live server, through unmodified AWS clients."""
