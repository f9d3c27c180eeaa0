"""The package as a whole: examples in docstrings, exceptions for every reason, types, and no stray names."""
import doctest
import importlib
import os
import pathlib
import pkgutil
import shutil
import subprocess
import unittest

import dpar
from dpar import errors
from dpar.v1 import errors_pb2
from support import main

PACKAGE = pathlib.Path(dpar.__file__).parent
SOURCE = pathlib.Path(os.environ["DPAR_SOURCE_DIR"]) / "client" / "python"
PYTHON = "/usr/bin/python3"


class PackageTest(unittest.TestCase):
    def test_every_example_in_a_docstring_holds(self) -> None:
        attempted = 0
        for module in pkgutil.iter_modules([str(PACKAGE)]):
            if module.name not in ("v1", "_native"):
                result = doctest.testmod(importlib.import_module(f"dpar.{module.name}"))
                self.assertEqual(result.failed, 0, module.name)
                attempted += result.attempted
        self.assertGreater(attempted, 30)

    def test_every_reason_has_an_exception_with_a_hint(self) -> None:
        reasons = {kind.reason for kind in errors.Error.__subclasses__() if kind.reason}
        self.assertEqual(reasons, set(errors_pb2.ErrorReason.keys()) - {"ERROR_REASON_UNSPECIFIED"})
        for reason in reasons:
            error = errors.make_error("INTERNAL", reason, "what happened", {"limit": "max_nodes"})
            self.assertEqual((error.reason, error.message, error.code), (reason, "what happened", "INTERNAL"))
            self.assertTrue(error.hint or reason in ("INVALID_FIELD",), reason)
            self.assertNotIn("Traceback", "".join(error._render_traceback_()))
        self.assertIs(type(errors.make_error("CANCELLED", "", "stopped", {})), errors.Error)
        self.assertIs(type(errors.make_error("UNAVAILABLE", "", "gone", {})), errors.ServerUnavailable)
        self.assertIs(type(errors.make_error("INTERNAL", "A_LATER_REASON", "new", {})), errors.Error)

    def test_accounting_loads_neither_grpc_nor_protobuf(self) -> None:
        check = (
            "import sys; from dpar import privacy; print([m for m in ('grpc', 'google.protobuf') if m in sys.modules])"
        )
        run = subprocess.run([PYTHON, "-c", check], capture_output=True, text=True, check=True)
        self.assertEqual(run.stdout, "[]\n")

    def test_the_accounting_of_the_documentation_runs(self) -> None:
        page = (SOURCE.parents[1] / "docs" / "python.md").read_text()
        script = page.split("## Privacy accounting")[1].split("```python\n")[1].split("```")[0]
        run = subprocess.run([PYTHON, "-c", script], capture_output=True, text=True, check=True)
        epsilon, delta, noise = map(float, run.stdout.split())
        self.assertAlmostEqual(epsilon, 4.20186, places=4)
        self.assertLess(delta, 1e-5)
        self.assertGreater(noise, 2.7)

    def test_types_are_strict(self) -> None:
        if shutil.which("mypy", path="/usr/bin") is None:
            self.skipTest("mypy is not installed")
        run = subprocess.run(
            [
                "/usr/bin/mypy",
                "--config-file",
                SOURCE / "mypy.ini",
                "--python-executable",
                PYTHON,
                "--cache-dir",
                "/dev/null",
                "-p",
                "dpar",
            ],
            cwd=PACKAGE.parent,
            capture_output=True,
            text=True,
        )
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def test_there_is_no_unused_name(self) -> None:
        if shutil.which("pyflakes3", path="/usr/bin") is None:
            self.skipTest("pyflakes3 is not installed")
        files = [str(file) for folder in ("dpar", "tests", ".") for file in (SOURCE / folder).glob("*.py")]
        run = subprocess.run(["/usr/bin/pyflakes3", *files], capture_output=True, text=True)
        self.assertEqual(run.stdout + run.stderr, "")

    def test_lines_and_files_are_short(self) -> None:
        for file in SOURCE.rglob("*.py*"):
            lines = file.read_text().split("\n")
            self.assertLessEqual(len(lines), 500, file)
            self.assertLessEqual(max(map(len, lines)), 120, file)

    def test_the_stub_names_what_the_native_module_has(self) -> None:
        native = importlib.import_module("dpar._native")
        stub = (PACKAGE / "_native.pyi").read_text()
        for name in dir(native):
            if not name.startswith("__"):
                self.assertRegex(stub, rf"(def|class) {name}\b|^{name}:|\n{name}:")
                if isinstance(getattr(native, name), type):
                    for member in vars(getattr(native, name)):
                        if not member.startswith("_"):
                            self.assertIn(f"def {member}(", stub)


if __name__ == "__main__":
    main()
