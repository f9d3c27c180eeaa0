"""The wheel: whole, the same twice, and enough for the first script of docs/python.md in a clean environment."""
import base64
import hashlib
import os
import pathlib
import re
import subprocess
import zipfile

import dpar
from support import ServerTest, main, make_graph

PYTHON = "/usr/bin/python3"
SOURCE = pathlib.Path(os.environ["DPAR_SOURCE_DIR"])


class WheelTest(ServerTest):
    def make(self, name: str) -> pathlib.Path:
        version = re.search(r"^project\(dpar VERSION ([0-9.]+)", (SOURCE / "CMakeLists.txt").read_text(), re.M)
        assert version is not None
        run = subprocess.run(
            [
                PYTHON,
                SOURCE / "client" / "python" / "make_wheel.py",
                pathlib.Path(dpar.__file__).parent,
                version[1],
                self.place / name,
            ],
            capture_output=True,
            text=True,
        )
        self.assertEqual(run.returncode, 0, run.stderr)
        return pathlib.Path(run.stdout.strip())

    def test_its_record_is_what_is_in_it(self) -> None:
        wheel = self.make("one")
        self.assertEqual(wheel.read_bytes(), self.make("two").read_bytes())
        with zipfile.ZipFile(wheel) as archive:
            names = set(archive.namelist())
            (record,) = (name for name in names if name.endswith(".dist-info/RECORD"))
            listed = set()
            for line in archive.read(record).decode().strip().split("\n"):
                name, digest, size = line.split(",")
                listed.add(name)
                if name != record:
                    content = archive.read(name)
                    expected = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
                    self.assertEqual((digest, int(size)), (f"sha256={expected}", len(content)))
            self.assertEqual(listed, names)
            self.assertTrue({"dpar/py.typed", "dpar/_native.pyi", "dpar/v1/training_pb2.pyi"} <= names)

    def test_the_first_script_runs_in_a_clean_environment(self) -> None:
        place = self.place / "venv"
        made = subprocess.run([PYTHON, "-m", "venv", "--system-site-packages", place], capture_output=True, text=True)
        if made.returncode != 0:
            self.skipTest(f"python3-venv is not installed: {made.stdout}")
        clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        installed = subprocess.run(
            [place / "bin" / "pip", "install", "--no-index", "--no-cache-dir", self.make("wheel")],
            capture_output=True,
            text=True,
            env=clean,
        )
        self.assertEqual(installed.returncode, 0, installed.stdout + installed.stderr)
        page = (SOURCE / "docs" / "python.md").read_text()
        script = page.split("<!-- first model -->")[1].split("```python\n")[1].split("```")[0]
        self.assertLessEqual(len(script.strip().split("\n")), 15)
        (self.place / "first.py").write_text(script)
        make_graph(50).write(self.place / "train.npz")
        make_graph(51).write(self.place / "query.npz")
        run = subprocess.run(
            [place / "bin" / "python", "first.py", "train.npz", "query.npz", self.server.data / "keys" / "signing.pub"],
            cwd=self.place,
            capture_output=True,
            text=True,
            env=clean | {"DPAR_SERVER": self.server.address, "DPAR_CA": self.server.ca, "DPAR_TOKEN": self.token},
        )
        self.assertEqual(run.returncode, 0, run.stderr)
        printed = self.server.dpar(
            self.token, "predict", "--model", self.place / "model" / "model.npz", "--graph", self.place / "query.npz"
        )
        self.assertIn(run.stdout.strip().replace("accuracy ", "accuracy   "), printed)


if __name__ == "__main__":
    main()
