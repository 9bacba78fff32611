"""What is known about documents and applications: their records, and the table of applications."""
