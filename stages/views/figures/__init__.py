"""The figures: each file draws one from study.json, or gives None where the study has nothing to draw."""
