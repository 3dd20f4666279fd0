"""The contracts every program shares: job, plan, membership, profile, events, and the board."""
