"""What the commands of every base are made of: options, output, progress, dispatch."""
