"""The cross-encoder, which reads a question and a text together, with the project's own adapter."""
