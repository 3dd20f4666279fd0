"""Torch for agent pods out of this machine's own virtual environment, not out of their image.

An image with torch takes minutes to build and import, and 15 GB of disk. So the cluster itself adds
a folder of its nodes to every agent pod: a MutatingAdmissionPolicy, since job manifests must stay
what they are elsewhere. The agent image without torch looks for it in just that place.
"""

from __future__ import annotations

import sysconfig
from typing import Any

NAME = "parcae-torch-of-the-machine"
PLACE = "/opt/torch"

_PATCH = f"""\
Object{{
  spec: Object.spec{{
    volumes: [Object.spec.volumes{{
      name: "torch-of-the-machine",
      hostPath: Object.spec.volumes.hostPath{{path: "FOLDER", type: "Directory"}}
    }}],
    containers: object.spec.containers.map(c, Object.spec.containers{{
      name: c.name,
      volumeMounts: [Object.spec.containers.volumeMounts{{
        name: "torch-of-the-machine", mountPath: "{PLACE}", readOnly: true
      }}]
    }})
  }}
}}
"""


def policy() -> list[dict[str, Any]]:
    """The policy and what puts it into force; agent pods that mount something there are left."""
    folder = sysconfig.get_path("purelib")
    mounts = "object.spec.containers.all(c, !has(c.volumeMounts) || c.volumeMounts.all(m, "
    head = {"apiVersion": "admissionregistration.k8s.io/v1"}
    return [
        {
            **head,
            "kind": "MutatingAdmissionPolicy",
            "metadata": {"name": NAME},
            "spec": {
                "failurePolicy": "Fail",
                "reinvocationPolicy": "Never",
                "matchConstraints": {
                    "objectSelector": {"matchLabels": {"app.kubernetes.io/name": "parcae-agent"}},
                    "resourceRules": [
                        {
                            "apiGroups": [""],
                            "apiVersions": ["v1"],
                            "operations": ["CREATE"],
                            "resources": ["pods"],
                        }
                    ],
                },
                "matchConditions": [
                    {"name": "no-torch-yet", "expression": f"{mounts}m.mountPath != '{PLACE}'))"}
                ],
                "mutations": [
                    {
                        "patchType": "ApplyConfiguration",
                        "applyConfiguration": {"expression": _PATCH.replace("FOLDER", folder)},
                    }
                ],
            },
        },
        {
            **head,
            "kind": "MutatingAdmissionPolicyBinding",
            "metadata": {"name": NAME},
            "spec": {"policyName": NAME},
        },
    ]
