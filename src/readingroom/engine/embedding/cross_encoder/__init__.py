"""The packaged cross-encoder with an adapter of the project's own, as a graph that is cheap to run."""
