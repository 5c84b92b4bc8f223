"""MLflow: what a study says as runs (no mlflow there), and the store that takes each of them once."""
