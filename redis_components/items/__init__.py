"""Item streams and refused items."""
