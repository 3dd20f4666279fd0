"""The chart's Grafana dashboards as code: ``make dashboards`` writes the JSON that Grafana reads.

``metrics`` lists what may be drawn, ``queries`` asks for it, ``panels`` draws, ``page`` lays out;
``job`` and ``fleet`` are the two dashboards, each with one file for each group of its panels.
"""
