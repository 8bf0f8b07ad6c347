"""Decides how many crawlers run where: sizes, reconciliation, rolls, autoscaling, holds."""
