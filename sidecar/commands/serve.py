"""`cc-agents serve`: turns for another program, JSON-RPC 2.0 over stdio."""

from __future__ import annotations

import argparse
import os


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "Methods, notifications and errors: see the README. The shapes are in sidecar/schemas."


def run(args: argparse.Namespace) -> int:
    import anyio

    from sidecar.hosts.server import Server

    return anyio.run(Server(os.environ).run)
