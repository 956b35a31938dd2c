"""A page with 30 pictures of 20 kB, an ASGI application.

`page.py KEY CERTIFICATE` writes a key and its certificate to these files, and prints the hash of the key.

Chromium accepts the certificate of that hash: --ignore-certificate-errors-spki-list.
"""

import base64
import datetime
import hashlib
import sys

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

PICTURES = 30
HEAD = "<!doctype html><title>protocols</title><link rel=icon href=data:,>"
PAGE = HEAD + "".join(f"<img src=/{number}.svg>" for number in range(PICTURES))
PICTURE = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><!--' + "x" * 20_000 + "--></svg>"


async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    kind, body = ("text/html", PAGE) if scope["path"] == "/" else ("image/svg+xml", PICTURE)
    headers = [(b"content-type", kind.encode()), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body.encode()})


def write(key_file, certificate_file):
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "server")])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    made = made.not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(now + datetime.timedelta(days=7))
    made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName("server")]), critical=False)
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    with open(key_file, "wb") as file:
        file.write(key.private_bytes(serialization.Encoding.PEM, *form))
    with open(certificate_file, "wb") as file:
        file.write(made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    public = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    print(base64.b64encode(hashlib.sha256(public).digest()).decode())


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    write(*sys.argv[1:])
