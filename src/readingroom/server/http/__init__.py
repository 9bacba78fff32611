"""What every HTTP request passes: security, limits, errors; and the REST and admin routes."""
