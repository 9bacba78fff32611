"""What kind of planning document a file is: by its name, its titles, its words and its lines."""
