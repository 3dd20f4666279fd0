"""Tests. A package, so that helpers of one folder can be imported by others: ``tests.cluster``."""
