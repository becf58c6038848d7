"""Hypothetical answers: what may still become true while data is late.

The query is resolved once, before any data, into schemas (`resolution`); arrivals then fill their premises in
(`online`). Terms and ideas follow the paper on hypothetical answers to continuous queries with communication delays.
"""
