"""Replays recordings of spot instances under a policy, and counts the samples it trains."""
