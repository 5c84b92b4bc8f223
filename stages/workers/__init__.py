"""The process that holds one (model, mode), the pipe to it, and what it can be asked to do."""
