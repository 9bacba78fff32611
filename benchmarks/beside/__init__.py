"""0.1.0 beside the present tree: the work of every other part, done by both in turn."""
