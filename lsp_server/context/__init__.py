"""What the model reads besides the file around the hole, and how much of everything."""
