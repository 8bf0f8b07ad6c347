"""What somebody tries who wants the fleet to do what it should not: each sentence of `docs/security.md` names one of these."""
