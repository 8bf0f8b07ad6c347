"""Publication of changes of posts and comments: rules, outputs, and the publisher, one process at a time for each output."""
