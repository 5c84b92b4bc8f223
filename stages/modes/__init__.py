"""Operating modes: each states a claim on two axes and knows how to get there."""
