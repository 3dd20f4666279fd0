"""Parcae on the test cluster: our images by our Dockerfile, our chart by Helm. ``make deploy``."""
