"""The packaged cross-encoder with the project's own adapter, as a graph of fewer steps."""
