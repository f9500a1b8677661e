"""The HTTP service that predicts rows with a model of an earlier run."""
