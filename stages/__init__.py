"""opmode: which inference operating mode a PyTorch service should run, measured and proved.

A file directly in this package is one command (a DVC stage or a tool); the folders are the parts they share.
"""

from stages.core import missing_packages

__version__ = "0.1.0"

missing_packages.explain()
