"""The forum application: what watches forums with the fleet of `workers`."""
