"""The knowledge bases: the same rooms in each, and none knows another."""
