"""Data to try things on: small generators, each deterministic by its seed."""
