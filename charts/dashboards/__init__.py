"""The chart's Grafana dashboards as code: ``make dashboards`` writes the JSON that Grafana reads.

``queries`` asks for what the operator's catalog (``parcae_operator.metrics``) lists, ``panels``
draws, ``page`` lays out; ``job`` and ``fleet`` are the two dashboards, each with one file for each
group of its panels.
"""
