"""What every other part rests on: settings, protocols, records, atomic files. No torch, no hydra, no mlflow."""
