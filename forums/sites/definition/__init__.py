"""The site file: its model, its layers, and how it is loaded."""
