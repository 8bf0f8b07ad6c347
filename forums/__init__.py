"""The forum application, which watches forums with the fleet of `workers`."""
