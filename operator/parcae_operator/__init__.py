"""The job controller (pure) and, at its edges, what it drives."""
