"""The proof that dashboards and alerts tell the truth: a real Prometheus scrapes a run on a real
cluster, and every query is compared with the run's own records. ``make e2e-observe``."""
