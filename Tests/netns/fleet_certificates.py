# SPDX-License-Identifier: Apache-2.0
"""Certificates for a hub: fleet_certificates.py DIRECTORY ADDRESS makes ca.pem, hub.key, and with that
key good.pem and expired.pem, signed by the CA; expired.pem ended yesterday."""
import datetime
import ipaddress
import os
import sys

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = datetime.timedelta(days=1)
NOW = datetime.datetime.now(datetime.timezone.utc)


def name(text):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def signed(subject, key, issuer, issuer_key, end, extension):
    return x509.CertificateBuilder(
        subject_name=name(subject), issuer_name=name(issuer), public_key=key.public_key(),
        serial_number=x509.random_serial_number(), not_valid_before=NOW - 9 * DAY,
        not_valid_after=end).add_extension(extension, True).sign(issuer_key, hashes.SHA256())


def main(directory, address):
    def write(file, data):
        with open(os.open(f"{directory}/{file}", os.O_WRONLY | os.O_CREAT, 0o600), "wb") as out:
            out.write(data)

    pem = serialization.Encoding.PEM
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca = signed("test CA", ca_key, "test CA", ca_key, NOW + DAY,
                x509.BasicConstraints(True, None))
    write("ca.pem", ca.public_bytes(pem))
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
    for file, end in [("good.pem", NOW + DAY), ("expired.pem", NOW - DAY)]:
        write(file, signed(address, key, "test CA", ca_key, end, names).public_bytes(pem))
    write("hub.key", key.private_bytes(pem, serialization.PrivateFormat.PKCS8,
                                       serialization.NoEncryption()))


if __name__ == "__main__":
    main(*sys.argv[1:])
