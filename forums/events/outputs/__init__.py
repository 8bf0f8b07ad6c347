"""Where events go: one file for each kind of output, each with `deliver`."""
