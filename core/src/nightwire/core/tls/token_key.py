"""The key by which a site signs tokens, and the tokens: for a while each says who shows it."""

import json
import time
from pathlib import Path

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from nightwire.core.runtime.credentials import write_private_file
from nightwire.core.tls.site import SiteError

ISSUER = AUDIENCE = "nightwire"
"""What the site's tokens name as their issuer, and for whom they are."""
ALGORITHM, BITS, KEY_ID = "RS256", 3072, "site"


def token_key(path: Path) -> rsa.RSAPrivateKey:
    """Return the key in *path*, made the first time; its owner alone can read it.

    Raises:
        SiteError: Something else is there.
    """
    if not path.exists():
        fresh = rsa.generate_private_key(public_exponent=65537, key_size=BITS)
        pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
        text = fresh.private_bytes(pem, pkcs8, serialization.NoEncryption()).decode()
        write_private_file(path, text)
    found = serialization.load_pem_private_key(path.read_bytes(), password=None)
    if not isinstance(found, rsa.RSAPrivateKey):
        raise SiteError(f"{path} holds no RSA key")
    return found


def public_keys(key: rsa.RSAPrivateKey) -> str:
    """Return what everybody may know of *key*, as a JSON Web Key Set."""
    public = RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    return json.dumps({"keys": [public | {"kid": KEY_ID, "use": "sig", "alg": ALGORITHM}]})


def signed_token(key: rsa.RSAPrivateKey, name: str, life: float) -> str:
    """Return a token that names the user *name*, and holds for *life* [s]."""
    now = int(time.time())
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": name, "iat": now, "exp": now + int(life)}
    return jwt.encode(claims, key, ALGORITHM, headers={"kid": KEY_ID})
