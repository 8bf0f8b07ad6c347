"""A certificate authority for one test, with a certificate for 127.0.0.1 and one for a client."""

from __future__ import annotations

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Certificates:
    """PEM files in `folder`: `ca`, `server`, `server_key`, `client`, `client_key`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ca_key = ec.generate_private_key(ec.SECP256R1())
        self._ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
        own = self._signed(self._ca_name, self._ca_key.public_key(), x509.BasicConstraints(ca=True, path_length=0))
        self.ca = self._write("ca.pem", own.public_bytes(serialization.Encoding.PEM))
        here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        self.server, self.server_key = self._pair("server", here)
        self.client, self.client_key = self._pair("client", x509.SubjectAlternativeName([x509.DNSName("client")]))

    def for_a_server(self) -> ssl.SSLContext:
        """A server's side that wants a certificate of the client, too."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=self.ca)
        context.load_cert_chain(self.server, self.server_key)
        context.verify_mode = ssl.CERT_REQUIRED
        return context

    def options(self) -> str:
        """For the end of a `rediss://` URL."""
        return f"ssl_ca_certs={self.ca}&ssl_certfile={self.client}&ssl_keyfile={self.client_key}"

    def _pair(self, name: str, alternative: x509.SubjectAlternativeName) -> tuple[str, str]:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = self._signed(subject, key.public_key(), alternative)
        pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        return self._write(f"{name}.pem", certificate.public_bytes(serialization.Encoding.PEM)), self._write(f"{name}.key", pem)

    def _signed(self, subject: x509.Name, key: ec.EllipticCurvePublicKey, extension: x509.ExtensionType) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder(
            issuer_name=self._ca_name,
            subject_name=subject,
            public_key=key,
            serial_number=x509.random_serial_number(),
            not_valid_before=now - timedelta(hours=1),
            not_valid_after=now + timedelta(hours=1),
        )
        return builder.add_extension(extension, critical=False).sign(self._ca_key, hashes.SHA256())

    def _write(self, name: str, pem: bytes) -> str:
        (self._folder / name).write_bytes(pem)
        return str(self._folder / name)
