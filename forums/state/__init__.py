"""Records of the forum application in Redis."""
