"""Words every layer shares; imports nothing of ours."""
