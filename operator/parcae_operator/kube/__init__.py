"""The operator on Kubernetes: what is specific to it, around the controller that local runs share.

::

    kopf's watches ─▶ handlers ─▶ store (what the cluster shows) ─▶ pod_cluster ─┐
                         │                                                      ▼
                         └─▶ jobs ─▶ runner, one a job: thread with the loop ─▶ decide ─▶ api
"""
