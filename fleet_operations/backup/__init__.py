"""A fleet's keys in Redis as of one instant, in a file that is written and read in small parts."""
