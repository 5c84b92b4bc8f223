"""opmode: which inference operating mode a PyTorch service should run, measured and proved.

A file directly in this package is one command (a DVC stage or a tool); the folders are the parts they share.
"""

from stages.core import before_main

__version__ = "0.1.0"

before_main.explain()
