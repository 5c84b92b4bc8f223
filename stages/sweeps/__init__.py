"""The cells of a sweep: what each chooses, the stage commands it runs, and what became of it. No hydra, no mlflow."""
