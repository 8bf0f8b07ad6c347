"""Tables, their version and their column types."""
