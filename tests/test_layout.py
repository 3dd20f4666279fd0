"""The repository's own rules that no other tool holds."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def test_operator_folder_is_no_package() -> None:
    # An operator/__init__.py would replace the standard library's module in every Python
    # started in the root, and most tools would not notice.
    assert not (ROOT / "operator" / "__init__.py").exists()


def test_python_starts_in_the_root() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import collections, operator; print(operator.add(1, 2))"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "3", done.stderr


@pytest.mark.parametrize("module", ["parcae_operator", "parcae_optimizer", "parcae_api"])
def test_light_programs_load_no_torch(module: str) -> None:
    code = f"import sys, pkgutil, importlib, {module}\n"
    code += f"for m in pkgutil.iter_modules({module}.__path__): "
    code += f"importlib.import_module('{module}.' + m.name)\n"
    code += "assert 'torch' not in sys.modules and 'kopf' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_supervisor_loads_no_torch() -> None:
    code = "import sys, parcae_agent.__main__, parcae_agent.agent\n"
    code += "assert 'torch' not in sys.modules and 'httpx' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_no_source_file_is_long() -> None:
    folders = ["api", "traces", "predictor", "optimizer", "simulator", "operator", "agent", "cli"]
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    lengths = {str(p.relative_to(ROOT)): len(p.read_text().splitlines()) for p in files}
    assert files
    assert {name: n for name, n in lengths.items() if n > 400} == {}


def test_readme_shows_the_example_as_it_is() -> None:
    readme = (ROOT / "README.md").read_text()
    for name in ("gpt.py", "job.yaml"):
        assert (ROOT / "examples" / "gpt" / name).read_text().rstrip() in readme, name


def test_example_is_forty_lines() -> None:
    assert len((ROOT / "examples" / "gpt" / "gpt.py").read_text().splitlines()) <= 40
