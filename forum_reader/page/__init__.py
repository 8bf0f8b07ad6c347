"""Parts of a page: its tree, its frame, its kind, its links to other pages."""
