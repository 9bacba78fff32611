"""What several federal file formats share: files and zips, XML, people, topics, references."""
