"""Pictures: the layer × head heat map of F1 scores."""
