#!/usr/bin/env python3
"""A download over QUIC: `transfer.py serve`, and `transfer.py get HOST BYTES`, which prints the duration.

Needs aioquic (pip install aioquic). The server creates a self-signed certificate, which the client does not verify.
"""

import asyncio
import datetime
import ssl
import sys
import tempfile
import time

from aioquic.asyncio import connect, serve
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import StreamDataReceived
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

PORT = 4433
PROTOCOLS = ["narrows-example"]


class Server(QuicConnectionProtocol):
    """Answers a number on a stream with that many bytes."""

    def quic_event_received(self, event):
        if isinstance(event, StreamDataReceived) and event.end_stream:
            self._quic.send_stream_data(event.stream_id, bytes(int(event.data)), end_stream=True)
            self.transmit()


def certificate():
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "server")])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    made = made.not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(now + datetime.timedelta(days=1))
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM) + key.private_bytes(
        serialization.Encoding.PEM, *form
    )


async def serve_for_ever():
    configuration = QuicConfiguration(is_client=False, alpn_protocols=PROTOCOLS)
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        file.write(certificate())
        file.flush()
        configuration.load_cert_chain(file.name)
    await serve("::", PORT, configuration=configuration, create_protocol=Server)
    await asyncio.Event().wait()


async def get(host, count):
    configuration = QuicConfiguration(alpn_protocols=PROTOCOLS, verify_mode=ssl.CERT_NONE)
    begin = time.monotonic()
    async with connect(host, PORT, configuration=configuration) as client:
        connected = time.monotonic()
        reader, writer = await client.create_stream()
        writer.write(str(count).encode())
        writer.write_eof()
        body = await reader.read()
    end = time.monotonic()
    if len(body) != count:
        sys.exit(f"{len(body)} of {count} bytes arrived")
    rate = 8e-6 * count / (end - connected)
    print(f"connected after {connected - begin:.3f} s, {count} bytes after {end - begin:.3f} s ({rate:.2f} Mbit/s)")


if sys.argv[1:] == ["serve"]:
    asyncio.run(serve_for_ever())
elif len(sys.argv) == 4 and sys.argv[1] == "get":
    asyncio.run(get(sys.argv[2], int(sys.argv[3])))
else:
    sys.exit(__doc__)
