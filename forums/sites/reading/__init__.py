"""Reading forum pages without a site file: what kind of page it is, and its posts."""
