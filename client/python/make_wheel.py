"""Zips a package directory into a wheel, with Python's own library alone.

    make_wheel.py PACKAGE_DIRECTORY VERSION OUTPUT_DIRECTORY

The same files give the same bytes. The tag is that of the Python that runs this, which must be the one that the native
module was built for.
"""
import base64
import hashlib
import pathlib
import sys
import sysconfig
import zipfile

FIRST_MOMENT = (1980, 1, 1, 0, 0, 0)  # the first that a zip can name
METADATA = """Metadata-Version: 2.1
Name: dpar
Version: {version}
Summary: Train node classifiers on private graphs, with a certificate of what that cost
License: Apache-2.0
Requires-Python: >=3.11
Requires-Dist: numpy>=1.24
Requires-Dist: protobuf>=3.21
Requires-Dist: grpcio>=1.51
Provides-Extra: tables
Requires-Dist: pandas; extra == "tables"
Provides-Extra: progress
Requires-Dist: tqdm; extra == "progress"
"""


def tag() -> str:
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    return f"{python}-{python}-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"


def main(package: pathlib.Path, version: str, output: pathlib.Path) -> None:
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    if not (package / f"_native{suffix}").is_file():
        sys.exit(f"make_wheel: {package} has no _native{suffix}: it was built for another Python")
    information = f"dpar-{version}.dist-info"
    files = {
        f"dpar/{file.relative_to(package)}": file.read_bytes()
        for file in package.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts and (file.suffix != ".so" or file.name.endswith(suffix))
    }
    files[f"{information}/METADATA"] = METADATA.format(version=version).encode()
    files[f"{information}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: dpar {version}\nRoot-Is-Purelib: false\n" f"Tag: {tag()}\n"
    ).encode()
    record = []
    for name, content in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record.append(f"{name},sha256={digest},{len(content)}\n")
    files[f"{information}/RECORD"] = ("".join(record) + f"{information}/RECORD,,\n").encode()
    output.mkdir(parents=True, exist_ok=True)
    wheel = output / f"dpar-{version}-{tag()}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(files.items()):
            entry = zipfile.ZipInfo(name, FIRST_MOMENT)
            entry.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    print(wheel)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3]))
