"""Lets `python -m readingroom` stand for the `readingroom` command."""

from readingroom.cli import main

if __name__ == "__main__":
    main()
