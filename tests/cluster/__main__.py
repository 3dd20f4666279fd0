"""``python -m tests.cluster up|down|status|…``: a cluster to work with by hand."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated, Optional

import typer

from . import needs, toolchain
from .cluster import Cluster
from .control_plane import COMPONENTS, Component
from .errors import ClusterError
from .layout import ClusterFiles
from .node import Node
from .node_config import NodeSpec
from .take_down import names, owner_lives, sweep, take_down

app = typer.Typer(
    help="A real Kubernetes of several nodes on this machine.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
Name = Annotated[str, typer.Option(help="The cluster's name.", envvar="PARCAE_CLUSTER")]
NodeName = Annotated[str, typer.Argument(help="A node's name.")]
DEFAULT = "parcae"
SPOT = {"cloud.google.com/gke-spot": "true", "cloud.google.com/gke-provisioning": "spot"}


def default_nodes() -> list[NodeSpec]:
    """Returns three spot nodes and one on-demand node, labelled as one cloud does it."""
    spot = [
        NodeSpec(name, SPOT, provider_id=f"gce://test/zone-a/{name}")
        for name in ("spot-1", "spot-2", "spot-3")
    ]
    safe = {"cloud.google.com/gke-provisioning": "standard"}
    return [*spot, NodeSpec("safe", safe, provider_id="gce://test/zone-a/safe")]


@app.command()
def up(
    name: Name = DEFAULT,
    image: Annotated[
        Optional[list[Path]],  # noqa: UP045 - typer reads it
        typer.Option(help="An image archive that all nodes have."),
    ] = None,
) -> None:
    """Start a cluster of four nodes, or what is missing of it."""
    if missing := needs.missing():
        raise ClusterError("\n".join(missing))
    start_s = time.monotonic()
    sweep()
    files = ClusterFiles.of(name)
    if files.folder.exists() and not _runs(name):
        take_down(name)
    if files.folder.exists():
        cluster = Cluster.attach(name)
        known = {node.name for node in cluster.nodes}
        cluster.add_nodes([spec for spec in default_nodes() if spec.name not in known])
    else:
        typer.echo("starting; the first time this builds Kubernetes, which takes minutes", err=True)
        cluster = Cluster.up(name, default_nodes(), archives=image or [], kept=True)
    typer.echo(f"cluster {name} is up ({time.monotonic() - start_s:.0f} s)\n")
    _show(cluster)
    typer.echo(f"\n  eval $({sys.executable} -m tests.cluster env)   # then kubectl and helm work")
    typer.echo(f"  {sys.executable} -m tests.cluster kill spot-1   # also crash, cut, mend, remove")


@app.command()
def down(
    name: Name = DEFAULT,
    everything: Annotated[bool, typer.Option("--all", help="All clusters of this cache.")] = False,
) -> None:
    """Take a cluster down, and whatever killed runs have left."""
    for one in names() if everything else [name]:
        take_down(one)
    for one in sweep():
        typer.echo(f"took down {one}, whose owner is dead")


@app.command()
def status(name: Name = DEFAULT) -> None:
    """Say what runs."""
    for one in names():
        if one != name:
            owned = "in use" if owner_lives(ClusterFiles.of(one)) else "left by a killed run"
            typer.echo(f"(there is also {one}: {owned})")
    if name not in names():
        typer.echo(f"cluster {name} is not up")
        return
    _show(Cluster.attach(name))


@app.command()
def env(name: Name = DEFAULT) -> None:
    """Print the shell commands after which kubectl and helm work (Helm is built if need be)."""
    cluster = Cluster.attach(name)
    programs = cluster.folder / "bin"
    programs.mkdir(exist_ok=True)
    for program in (cluster.site.tools.kubectl, toolchain.helm()):
        link = programs / program.name
        link.unlink(missing_ok=True)
        link.symlink_to(program)
    typer.echo(f'export KUBECONFIG="{cluster.kubeconfig}" PATH="{programs}:$PATH"')


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def kubectl(context: typer.Context, name: Name = DEFAULT) -> None:
    """Run kubectl: ``python -m tests.cluster kubectl get pods``."""
    typer.echo(Cluster.attach(name).kubectl(*context.args), nl=False)


@app.command()
def add(node: NodeName, name: Name = DEFAULT, spot: bool = True) -> None:
    """Add a node."""
    labels = SPOT if spot else {}
    Cluster.attach(name).add_node(node, labels, provider_id=f"gce://test/zone-a/{node}")


@app.command()
def kill(node: NodeName, name: Name = DEFAULT) -> None:
    """End a node without a sound."""
    _node(name, node).kill()


@app.command()
def crash(node: NodeName, name: Name = DEFAULT) -> None:
    """End a node so that its peers see their connections break."""
    _node(name, node).crash()


@app.command()
def cut(node: NodeName, name: Name = DEFAULT) -> None:
    """Part a node from all others."""
    _node(name, node).cut()


@app.command()
def mend(node: NodeName, name: Name = DEFAULT) -> None:
    """Connect a node again."""
    _node(name, node).mend()


@app.command()
def remove(node: NodeName, name: Name = DEFAULT) -> None:
    """End a node and delete its Node object."""
    _node(name, node).remove()


@app.command()
def restart(component: str, name: Name = DEFAULT) -> None:
    """Kill and restart etcd, apiserver, controller-manager or scheduler."""
    known: dict[str, Component] = {one: one for one in COMPONENTS}
    if component not in known:
        raise ClusterError(f"{component} is none of {', '.join(known)}")
    Cluster.attach(name).control_plane.restart(known[component])


def _node(cluster: str, name: str) -> Node:
    return Cluster.attach(cluster).node(name)


def _runs(name: str) -> bool:
    """Says whether a control plane is alive; it is not after the machine was restarted."""
    try:
        plane = Cluster.attach(name).control_plane
    except ClusterError:
        return False
    return all(plane.process(component).alive() for component in COMPONENTS)


def _show(cluster: Cluster) -> None:
    for component in COMPONENTS:
        pid = cluster.control_plane.process(component).pid
        typer.echo(f"  {component:<20} {f'pid {pid}' if pid else 'dead'}")
    for node in cluster.nodes:
        try:
            ready = {"True": "Ready", "": "no Node object"}.get(node.ready(), "NotReady")
        except ClusterError:
            ready = "no answer from the API server"
        machine = "runs" if node.alive() else "dead"
        typer.echo(f"  {node.name:<20} {node.address:<12} {machine:<6} {ready}")
    typer.echo(f"  KUBECONFIG={cluster.kubeconfig}")


def main() -> None:
    """Runs the command; what goes wrong in the cluster is said without a traceback."""
    try:
        app(prog_name="python -m tests.cluster")
    except ClusterError as error:
        typer.echo(str(error), err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
