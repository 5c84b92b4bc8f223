"""Rows of text that the page, the Markdown report and the console share: every number is worded once."""
