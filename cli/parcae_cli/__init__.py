"""The ``parcae`` command."""
