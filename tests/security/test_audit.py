"""The audit of the dependencies, with services that say what the test wants to hear."""

from __future__ import annotations

import http.server
import importlib
import json
import subprocess
import threading
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def audit():
    if not (TOP / "tools" / "audit.py").is_file():
        pytest.skip("the tools are not part of what is installed")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(TOP)
        yield importlib.import_module("tools.audit")


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


def test_installed_and_oldest_packages_are_asked_about(audit, capsys):
    run, commands = _runner(CLEAN)
    assert audit.main([], run) == 0
    assert "The advisory service knows 2 of the packages; no problems." in capsys.readouterr().out
    assert [("--local" in c, "--requirement" in c) for c in commands] == [
        (False, False),
        (True, False),
        (False, True),
    ]


def test_a_weakness_is_named_and_fails(audit, capsys):
    run, _ = _runner(FOUND, code=1)
    assert audit.main([], run) == 1
    assert "numpy 2.0: PYSEC-1, CVE-1; fixed in 2.1" in capsys.readouterr().out


@pytest.mark.parametrize("answer", ["", "no JSON", "[]", UNKNOWN])
def test_services_out_of_reach_are_no_finding_but_are_said(audit, capsys, answer):
    run, _ = _runner(answer, code=1)
    assert audit.main([], run) == 0
    out = capsys.readouterr().out
    assert "No advisory service could be reached" in out
    assert "only conflicts were looked for" in out


def test_conflicts_are_found_offline(audit, capsys):
    run, _ = _runner("", check="a 1 requires b, which is not installed.\n")
    assert audit.main([], run) == 1
    assert "a 1 requires b" in capsys.readouterr().out


def test_every_bound_of_what_users_get_is_a_version(audit):
    bounds = audit.lower_bounds()
    assert {"numpy", "scikit-learn", "pyarrow", "skops"} <= {b.split("==")[0] for b in bounds}
    assert all(b.count("==") == 1 and "[" not in b for b in bounds)
    assert not any(b.startswith(("pytest", "ruff", "sphinx", "gmpll")) for b in bounds)


def test_with_a_service_on_this_machine(audit, tmp_path, capsys):
    """The whole way through pip-audit, to a service that finds numpy weak."""
    pytest.importorskip("pip_audit")
    project = tmp_path / "pyproject.toml"
    project.write_text('[project]\nname = "x"\ndependencies = ["numpy>=1.26"]\n')

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
        address = f"http://127.0.0.1:{server.server_address[1]}/"
        code = audit.main(["--osv-url", address, "--project", str(project)])
        server.shutdown()
    out = capsys.readouterr().out
    assert code == 1
    assert "numpy 1.26: FAKE-1; fixed in no version yet" in out
    assert "The advisory service knows" in out
