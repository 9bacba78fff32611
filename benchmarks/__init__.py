"""Measurements of what Reading Room costs beside what it stands on; `make bench` prints them."""
