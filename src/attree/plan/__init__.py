"""What config.yaml asks for, and where results lie."""
