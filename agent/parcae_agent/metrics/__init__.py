"""What an agent tells Prometheus. The worker leaves plain numbers; its supervisor tells them."""
