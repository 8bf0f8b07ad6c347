"""Log files of crawler slots: writing, rotating, reading, following."""
