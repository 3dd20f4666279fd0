"""Forecasts of spot availability: from what was seen to joint paths of what may come."""
