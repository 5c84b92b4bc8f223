"""What a bug bundle of a mode holds, and how it is written."""
