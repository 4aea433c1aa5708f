"""Makes S3 bodies with chunks that are signed with SigV4a, which no SDK for Python can send: the
strings to sign and the framing here, keys and signatures with AWS's common runtime."""

import hashlib
import hmac

import awscrt.crypto

# P-256: y^2 = x^3 - 3x + b modulo PRIME.
PRIME = 0xFFFFFFFF00000001000000000000000000000000FFFFFFFFFFFFFFFFFFFFFFFF
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
GENERATOR = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)
SIGNATURE_CHARACTERS = 144
CHUNK_BYTES_MIN = 8192  # except for the last
PAYLOAD = "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD"
EMPTY = hashlib.sha256(b"").hexdigest()


Point = tuple[int, int]


def add(one: Point | None, other: Point | None) -> Point | None:
    """Returns the sum of two points; None is the point at infinity."""
    if one is None or other is None:
        return one or other
    if one[0] == other[0] and (one[1] + other[1]) % PRIME == 0:
        return None
    slope = (
        3 * (one[0] ** 2 - 1) * pow(2 * one[1], -1, PRIME)
        if one == other
        else (other[1] - one[1]) * pow(other[0] - one[0], -1, PRIME)
    ) % PRIME
    x = (slope**2 - one[0] - other[0]) % PRIME
    return x, (slope * (one[0] - x) - one[1]) % PRIME


def multiply(scalar: int) -> Point | None:
    """Returns the point of a private key."""
    point, double = None, GENERATOR
    while scalar:
        point = add(point, double) if scalar & 1 else point
        double = add(double, double)
        scalar = scalar >> 1
    return point


def derive_key(access_key: str, secret: str) -> awscrt.crypto.EC:
    """Returns the key pair of an access key: NIST SP 800-108 in counter mode."""
    for counter in range(1, 255):
        text = (
            b"\0\0\0\1AWS4-ECDSA-P256-SHA256\0"
            + access_key.encode()
            + bytes([counter])
            + b"\0\0\1\0"
        )
        candidate = int.from_bytes(
            hmac.new(b"AWS4A" + secret.encode(), text, hashlib.sha256).digest(), "big"
        )
        if candidate <= ORDER - 2:
            # ECPrivateKey of RFC 5915: version 1, the scalar, the name of the curve, the point.
            point = b"".join(side.to_bytes(32, "big") for side in multiply(candidate + 1))
            inner = (
                b"\x02\x01\x01\x04\x20"
                + (candidate + 1).to_bytes(32, "big")
                + bytes.fromhex("a00a06082a8648ce3d030107a14403420004")
                + point
            )
            return awscrt.crypto.EC.new_key_from_der_data(b"\x30" + bytes([len(inner)]) + inner)
    raise AssertionError("254 candidates in a row are above the order of P-256")


def padded(signature: str) -> str:
    return signature.ljust(SIGNATURE_CHARACTERS, "*")


class Signer:
    """Signs the chunks of a body in order. `seed`: the request's signature; `time`: its
    X-Amz-Date."""

    def __init__(self, key: awscrt.crypto.EC, time: str, seed: str, service: str = "s3") -> None:
        self.key, self.previous = key, seed
        self.opening = f"{time}\n{time[:8]}/{service}/aws4_request"

    def sign(self, kind: str, *hashes: str) -> str:
        text = "\n".join([f"AWS4-ECDSA-P256-SHA256-{kind}", self.opening, self.previous, *hashes])
        self.previous = self.key.sign(hashlib.sha256(text.encode()).digest()).hex()
        return padded(self.previous)

    def chunk(self, data: bytes) -> bytes:
        signature = self.sign("PAYLOAD", EMPTY, hashlib.sha256(data).hexdigest())
        return f"{len(data):x};chunk-signature={signature}\r\n".encode() + (
            data + b"\r\n" if data else b""
        )

    def trailers(self, **trailers: str) -> bytes:
        named = sorted((name.replace("_", "-"), value) for name, value in trailers.items())
        signature = self.sign(
            "TRAILER",
            hashlib.sha256(
                "".join(f"{name}:{value}\n" for name, value in named).encode()
            ).hexdigest(),
        )
        return (
            "".join(
                f"{name}:{value}\r\n"
                for name, value in [*named, ("x-amz-trailer-signature", signature)]
            ).encode()
            + b"\r\n"
        )
