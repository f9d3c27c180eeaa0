#!/usr/bin/env python3
"""Serves a local ccache over HTTP on loopback, to read only, so that an image's build finds what was compiled before.

    ccache_server.py CACHE_DIRECTORY     prints the port that it listens on, and serves until it is killed
"""
import http.server
import pathlib
import re
import sys

KEY = re.compile(r"^/([0-9a-v]{2})/([0-9a-v]+)$")  # How ccache asks an HTTP server for an entry.
DEEPEST_LEVEL = 4  # A local cache spreads its files over two to four levels of directories, as it grows.
KINDS = "RM"  # Results and manifests are files of their own there, and one name space here.


def find(cache, path):
    match = KEY.match(path)
    if match is None:
        return None
    digest = "".join(match.groups())
    for level in range(1, DEEPEST_LEVEL + 1):
        for kind in KINDS:
            file = cache.joinpath(*digest[:level], digest[level:] + kind)
            if file.is_file():
                return file
    return None


class Handler(http.server.BaseHTTPRequestHandler):
    cache = None

    def do_GET(self):
        file = find(self.cache, self.path)
        if file is None:
            self.send_error(404)
            return
        content = file.read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_PUT(self):
        self.send_error(403)

    def log_message(self, *arguments):
        pass


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    Handler.cache = pathlib.Path(sys.argv[1])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()
