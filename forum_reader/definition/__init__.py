"""The site file: its model, its layers, and loading it."""
