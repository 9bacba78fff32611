"""The public contracts as data: collected from a running version, written, and compared."""
