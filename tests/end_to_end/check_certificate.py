#!/usr/bin/env python3
"""Checks a privacy certificate of dpar without dpar, from docs/certificate.md alone.

    check_certificate.py CERTIFICATE PUBLIC_KEY MODEL_FILE...

Needs Python's standard library and python3-cryptography. It checks the envelope, the signature, the files' digests, the
ledger's entry, delta and, where the event holds Gaussian mechanisms alone, epsilon. Exit code 0 when all of it holds, else 1.
"""
import base64
import hashlib
import json
import math
import sys

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

PAYLOAD_TYPE = "application/vnd.in-toto+json"
POST = 3  # the ledger's number for this kind of entry


class Refused(Exception):
    pass


def require(holds, what):
    if not holds:
        raise Refused(what)


def once(pairs):
    result = dict(pairs)
    require(len(result) == len(pairs), "a key is repeated")
    return result


def digits(text):
    return text.lower().split("e")[0].lstrip("-").replace(".", "").strip("0")


def number(text):
    value = float(text)
    require(math.isfinite(value) and len(digits(text)) <= 17, "a number has too many digits: " + text)
    return value


def parse(data):
    return json.loads(data.decode("utf-8"), object_pairs_hook=once, parse_float=number)


def decode(text):
    data = base64.b64decode(text, validate=True)
    require(base64.b64encode(data).decode() == text, "base64 is not in its one form")
    return data


def open_envelope(data, key):
    """The payload's bytes, once the signature over them holds."""
    envelope = parse(data)
    require(list(envelope) == ["payload", "payloadType", "signatures"], "the envelope has other fields")
    require(envelope["payloadType"] == PAYLOAD_TYPE and len(envelope["signatures"]) == 1, "no such envelope")
    signature = envelope["signatures"][0]
    require(list(signature) == ["keyid", "sig"], "the signature has other fields")
    require(json.dumps(envelope, separators=(",", ":")).encode() == data, "the envelope is not in its one form")
    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    require(signature["keyid"] == hashlib.sha256(der).hexdigest(), "signed by another key")
    payload = decode(envelope["payload"])
    signed = b"DSSEv1 %d %s %d %s" % (len(PAYLOAD_TYPE), PAYLOAD_TYPE.encode(), len(payload), payload)
    try:
        key.verify(decode(signature["sig"]), signed)
    except InvalidSignature:
        raise Refused("the signature does not hold") from None
    return payload


def mu_squared(event):
    """Of Gaussian mechanisms, which add up; None when there is another."""
    (kind, content), = event.items()
    if kind == "gaussian":
        return content["count"] * (content["sensitivity"] / content["noise_stddev"]) ** 2
    if kind == "stage":
        return mu_squared(content["event"])
    if kind == "composition":
        parts = [mu_squared(part) for part in content["events"]]
        return None if None in parts else sum(parts)
    return None


def gaussian_epsilon(mu, delta):
    """The least epsilon at which the mechanism is (epsilon, delta)-private (Balle and Wang, 2018)."""
    def cdf(x):
        return math.erfc(-x / math.sqrt(2)) / 2

    def delta_at(epsilon):
        return cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * cdf(-epsilon / mu - mu / 2)
    low, high = 0.0, 500.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_at(middle) > delta else (low, middle)
    return high


def entry_hash(predicate):
    ledger = predicate["ledger"]
    entry = ledger["entry"]
    fields = ["dpar ledger entry 1", ledger["population"], entry["previous_hash"], entry["sequence"],
              entry["time_microseconds"], POST, predicate["job"], entry["actor"], ledger["units"],
              "%.17g" % predicate["epsilon"], "%.17g" % predicate["delta"], entry["event"], "", entry["attempt"]]
    return hashlib.sha256("".join("%d:%s;" % (len(str(f)), f) for f in fields).encode()).hexdigest()


def check_degrees(predicate):
    """Without a degree promise the field is null, never missing."""
    declared = predicate["dataset"]["max_degree"]
    require(predicate["mechanism"]["plan"].get("max_degree") in (None, declared), "a promise that is not the dataset's")
    if predicate["ledger"] is not None:
        cap = predicate["ledger"]["cap_max_degree"]
        require(declared is None or cap is not None and cap <= declared, "a cap that forgets the dataset's promise")


def check_bounds(predicate):
    """What the dataset's graph may have at most is listed as public."""
    listed = {entry["quantity"]: entry["value"] for entry in predicate["unprotected"]}
    for name in ("edge_bound", "entry_bound"):
        bound = predicate["dataset"][name]
        require(bound >= 1 and listed[name.replace("_", " ")] == bound, "a bound that is not listed as public")


def check_guarantee(predicate):
    ledger = predicate["ledger"]
    slots = predicate["dataset"]["node_count"]
    require(predicate["delta"] <= ledger["cap_delta"] < 1 / slots, "delta is above the cap's, or not below 1/N")
    require(ledger["units_after"] == ledger["units_before"] + ledger["units"], "the units do not add up")
    require(entry_hash(predicate) == ledger["entry"]["hash"], "the ledger's entry has another hash")
    mu2 = mu_squared(predicate["event"])
    if mu2 is None:
        return "epsilon not recomputed: the event is not of Gaussian mechanisms alone"
    epsilon = gaussian_epsilon(math.sqrt(mu2), predicate["delta"])
    require(epsilon <= predicate["epsilon"] * (1 + 1e-9), "epsilon is understated: it is %.10g" % epsilon)
    require(abs(epsilon - predicate["accountant"]["epsilon"]) <= 1e-6, "the accountant's epsilon is another")
    return "epsilon %.10g recomputed, %.10g stated" % (epsilon, predicate["epsilon"])


def main(certificate, key_file, *models):
    with open(key_file, "rb") as file:
        key = load_pem_public_key(file.read())
    require(isinstance(key, Ed25519PublicKey), "not an Ed25519 key")
    with open(certificate, "rb") as file:
        statement = parse(open_envelope(file.read(), key))
    require(statement["_type"] == "https://in-toto.io/Statement/v1", "not an in-toto statement")
    require(statement["predicateType"] == "urn:dpar:privacy-certificate:v1", "another version")
    subjects = {subject["digest"]["sha256"] for subject in statement["subject"]}
    for model in models:
        with open(model, "rb") as file:
            require(hashlib.sha256(file.read()).hexdigest() in subjects, model + " is another file")
    predicate = statement["predicate"]
    check_degrees(predicate)
    check_bounds(predicate)
    private = predicate["guarantee"] == "node-level differential privacy"
    require(private or predicate["guarantee"].startswith("none:"), "another guarantee")
    print("good:", check_guarantee(predicate) if private else "nothing is guaranteed")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (Refused, ValueError, KeyError, TypeError, AttributeError) as error:
        sys.exit("refused: %s" % (error or type(error).__name__))
