"""Guards of the broker: fields and signatures of messages, replays, refused messages."""
