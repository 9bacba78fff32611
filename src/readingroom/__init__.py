"""Reading Room: official knowledge that AI agents can cite."""

__version__ = "0.1.0"
