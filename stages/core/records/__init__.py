"""Typed result documents: what a stage measured, on what, from which configuration and code."""
