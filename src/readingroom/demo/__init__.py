"""A sample world, written by us: it looks like the official one and never passes for it."""
