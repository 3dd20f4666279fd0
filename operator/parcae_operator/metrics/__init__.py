"""What the operator tells Prometheus: a pure core that turns facts into metrics, and its server."""
