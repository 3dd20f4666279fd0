"""The ParcaeJob kind: its schema, and what a real API server makes of it."""
