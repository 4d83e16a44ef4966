"""A site's authority and certificates are such that others' TLS believes them, and nobody else."""

import os
import shutil
import socket
import ssl
import stat
import subprocess
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from nightwire.core.cli import main
from nightwire.core.tls.site import Site, SiteError


def run(*words: str, status: int = 0) -> str:
    result = CliRunner().invoke(main, ["tls", *words])
    assert result.exit_code == status, result.output
    return result.output


def greet(server: Path, ca: Path, host: str, client_ca: Path | None = None, cert: Path | None = None) -> str:
    """Return what a server with the identity *server* says over TLS to a client that calls
    *host*.
    """
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=client_ca)
    serving.load_cert_chain(server)
    if client_ca:
        serving.verify_mode = ssl.CERT_REQUIRED
    calling = ssl.create_default_context(cafile=ca)
    calling.verify_flags |= ssl.VERIFY_X509_STRICT  # Python's default from 3.13 on
    if cert:
        calling.load_cert_chain(cert)
    ours, theirs = socket.socketpair()

    def serve() -> None:
        try:
            with serving.wrap_socket(ours, server_side=True) as connection:
                connection.sendall(b"hello")
        except OSError:
            ours.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with calling.wrap_socket(theirs, server_hostname=host) as connection:
            return connection.recv(16).decode()
    finally:
        theirs.close()
        thread.join()


def test_what_init_makes_is_believed_by_its_names_and_by_its_authority_alone(tmp_path: Path) -> None:
    here, other = Site(tmp_path / "here"), Site(tmp_path / "other")
    run("init", "broker.example.org", "192.0.2.7", "--folder", str(here.folder))
    other.init()
    for host in ("broker.example.org", "192.0.2.7", "localhost", "127.0.0.1"):
        assert greet(here.server, here.ca, host) == "hello"
    with pytest.raises(ssl.SSLCertVerificationError, match=r"not valid for 'elsewhere.example.org'"):
        greet(here.server, here.ca, "elsewhere.example.org")
    with pytest.raises(ssl.SSLCertVerificationError, match=r"signature failure|unable to get local issuer"):
        greet(here.server, other.ca, "localhost")


def test_a_client_is_known_by_what_the_site_signed_and_not_by_anything_else(tmp_path: Path) -> None:
    here, other = Site(tmp_path / "here"), Site(tmp_path / "other")
    for site in (here, other):
        site.init()
        site.add_client("lco")
    mine, strange = (site.folder / "lco.client.pem" for site in (here, other))
    assert greet(here.server, here.ca, "localhost", here.ca, mine) == "hello"
    for wrong in (strange, None):
        with pytest.raises(OSError, match=r"unknown ca|certificate required|reset|closed|EOF"):
            assert greet(here.server, here.ca, "localhost", here.ca, wrong) == "hello"


def test_init_again_renews_the_certificate_and_keeps_names_and_authority(tmp_path: Path) -> None:
    site = Site(tmp_path / "tls")
    first = site.init(["broker.example.org"])
    ca, server = site.ca.read_bytes(), site.server.read_bytes()
    assert site.init() == first == ["broker.example.org", "localhost", "127.0.0.1"]
    assert site.ca.read_bytes() == ca
    assert site.server.read_bytes() != server


def test_keys_are_for_their_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "tls"
    run("init", "--folder", str(folder))
    run("client", "lco", "--folder", str(folder))
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert {name for name, mode in modes.items() if mode & 0o77} == {"ca.pem"}
    assert modes.keys() == {"ca.pem", "ca.key.pem", "server.pem", "lco.client.pem"}
    assert b"PRIVATE" not in (folder / "ca.pem").read_bytes()


def test_who_reads_the_certificate_is_said_once_and_kept(tmp_path: Path) -> None:
    folder = tmp_path / "tls"
    run("init", "--folder", str(folder), "--owner", str(os.getuid()))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o711
    run("init", "--folder", str(folder))
    server = (folder / "server.pem").stat()
    assert (server.st_uid, stat.S_IMODE(server.st_mode)) == (os.getuid(), 0o600)


@pytest.mark.parametrize("host", ["-a.example.org", "a b", "münchen.example.org", "a..b", "x" * 300])
def test_what_is_no_name_of_a_machine_is_refused_by_name(tmp_path: Path, host: str) -> None:
    said = run("init", "--folder", str(tmp_path), "--", host, status=1)
    assert "is neither the name nor the address of a machine" in said
    assert not (tmp_path / "server.pem").exists()


def test_without_an_authority_one_line_says_what_to_do(tmp_path: Path) -> None:
    assert "`nightwire tls init` makes it" in run("client", "lco", "--folder", str(tmp_path), status=1)
    assert "holds no certificate" in run("show", "--folder", str(tmp_path), status=1)


def test_an_authority_that_lost_its_key_is_not_replaced_in_silence(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.init()
    (tmp_path / "ca.key.pem").unlink()
    with pytest.raises(SiteError, match="has no authority"):
        site.init()


def test_openssl_finds_nothing_wrong(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.init(["broker.example.org"])
    openssl = shutil.which("openssl")
    assert openssl, "openssl comes with Debian's Python"
    words = [openssl, "verify", "-x509_strict", "-purpose", "sslserver", "-CAfile", site.ca, site.server]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout.endswith("OK\n")
