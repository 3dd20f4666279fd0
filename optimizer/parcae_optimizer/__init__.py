"""Layouts: predicted throughput, partition into stages, placement, and the planners that choose."""
