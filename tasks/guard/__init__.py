"""Guards of the broker: envelopes, signatures, replays, refused messages."""
