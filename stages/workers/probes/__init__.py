"""Probes: each looks for one way in which captured or compiled inference goes wrong, on calls that are replays."""
