"""The version of tidelog, which the package metadata and saved states carry."""

__version__ = "0.1.0"
