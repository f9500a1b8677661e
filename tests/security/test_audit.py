"""The audit of the dependencies, with services that say what the test wants to hear."""

from __future__ import annotations

import http.server
import importlib.util
import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

pytest.importorskip("packaging")

from packaging.version import Version

TOP = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def audit():
    path = TOP / "tools" / "audit.py"
    if not path.is_file():
        pytest.skip("the tools are not part of a source distribution")
    specification = importlib.util.spec_from_file_location("gmpll_audit", path)
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module
    specification.loader.exec_module(module)
    return module


def _runner(answer, *, check="", code=0):
    """Stand in for pip-audit and pip check; note the commands."""
    commands = []

    def run(command):
        commands.append(command)
        if "check" in command:
            return subprocess.CompletedProcess(command, int(bool(check)), check, "")
        out = answer if isinstance(answer, str) else json.dumps(answer)
        return subprocess.CompletedProcess(command, code, out, "Trace...\nNo route to host")

    return run, commands


CLEAN = {"dependencies": [{"name": "numpy", "version": "2.0", "vulns": []}]}
WEAK = {"id": "PYSEC-1", "aliases": ["CVE-1"], "fix_versions": ["2.1"], "description": ""}
FOUND = {"dependencies": [{"name": "numpy", "version": "2.0", "vulns": [WEAK]}]}
UNKNOWN = {"dependencies": [{"name": "numpy", "skip_reason": "not found"}]}


@pytest.fixture
def in_order(audit, monkeypatch, tmp_path):
    """An environment and a project in which the other checks find nothing."""
    monkeypatch.setattr(audit, "installed_versions", lambda: {"numpy": Version("2.0")})
    project = tmp_path / "pyproject.toml"
    project.write_text('[project]\ndependencies = ["numpy>=1.26", "skops>=0.12"]\n')

    def main(run=None, *arguments):
        return audit.main(["--project", str(project), *arguments], run)

    return main


def test_nothing_found(in_order, capsys):
    run, commands = _runner(CLEAN)
    assert in_order(run) == 0
    assert "The advisory services checked 1 packages; no problems in 1" in capsys.readouterr().out
    assert len(commands) == 2  # the second service need not be asked


def test_a_weakness_is_named_and_fails(in_order, capsys):
    run, _ = _runner(FOUND, code=1)
    assert in_order(run) == 1
    assert "numpy 2.0: PYSEC-1, CVE-1; mended in 2.1" in capsys.readouterr().out


@pytest.mark.parametrize("answer", ["", "no JSON", "[]", UNKNOWN])
def test_services_out_of_reach_are_no_finding_but_are_said(in_order, capsys, answer):
    run, commands = _runner(answer, code=1)
    assert in_order(run) == 0
    out = capsys.readouterr().out
    assert "No advisory service could be reached" in out
    assert "only the conflicts, the bounds" in out
    assert [c[c.index("--vulnerability-service") + 1] for c in commands[:-1]] == ["pypi", "osv"]


def test_conflicts_and_known_weaknesses_are_found_offline(audit, monkeypatch, capsys):
    installed = {"skops": Version("0.11.0"), "h11": Version("0.16.0"), "numpy": Version("1.0")}
    monkeypatch.setattr(audit, "installed_versions", lambda: installed)
    run, _ = _runner("", check="a 1 requires b, which is not installed.\n")
    assert audit.main([], run) == 1
    out = capsys.readouterr().out
    assert "skops 0.11.0: CVE-2025-54412" in out
    assert "h11" not in out.rpartition("No advisory")[0]
    assert "numpy 1.0: pyproject.toml wants numpy>=" in out
    assert "a 1 requires b" in out


def test_every_bound_is_read(audit):
    """Each requirement of the project that has a lower bound is missed by a version below it."""
    old = dict.fromkeys(audit.installed_versions(), Version("0.0.1"))
    found = audit.bounds_not_kept(old, audit.requirements(TOP / "pyproject.toml"))
    assert {"numpy", "scikit-learn", "pyarrow", "skops"} <= {line.split()[0] for line in found}


@pytest.mark.parametrize(
    ("bound", "n_problems"), [("skops", 2), ("skops>=0.11", 2), ("skops>=0.12", 0), ("x>=0", 0)]
)
def test_bounds_that_let_weaknesses_in_are_found(audit, bound, n_problems):
    found = audit.weaknesses_allowed([audit.Requirement(bound)])
    assert len(found) == n_problems


def test_with_a_service_on_this_machine(in_order, capsys):
    """The whole way through pip-audit, to a service that finds numpy weak."""
    pytest.importorskip("pip_audit")

    class Service(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            affected = {
                "package": {"name": "numpy", "ecosystem": "PyPI"},
                "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}]}],
            }
            weakness = {"id": "FAKE-1", "modified": "2026-01-01T00:00:00Z", "details": "x"}
            weak = asked["package"]["name"] == "numpy"
            body = {"vulns": [{**weakness, "affected": [affected]}]} if weak else {}
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        code = in_order(None, "--osv-url", f"http://127.0.0.1:{server.server_address[1]}/")
        server.shutdown()
    out = capsys.readouterr().out
    assert code == 1
    assert "FAKE-1; mended in no version yet" in out
    assert "The advisory services checked" in out
