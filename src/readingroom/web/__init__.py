"""What the REST routes of several bases share."""
