"""What the web pages and REST routes of every base are made of."""
