"""Item streams, their consumer groups, and refused items."""
