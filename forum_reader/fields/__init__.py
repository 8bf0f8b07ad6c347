"""Fields of a post: author, text, id, date."""
