#!/usr/bin/env python3
"""Validates certificates against docs/certificate.schema.json, and mutants of them, all of which it must refuse.

    check_certificate_schema.py SCHEMA CERTIFICATE...

Needs python3-jsonschema. Says how many mutants it made; exit code 0 when the certificates pass and no mutant does.
"""
import base64
import copy
import json
import sys

from jsonschema import Draft202012Validator


def places(value, path=()):
    """Every object, list and leaf, as a path from the root."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in items:
        yield from places(child, path + (key,))


def at(value, path):
    for key in path:
        value = value[key]
    return value


def may_be_absent(path):
    """A list may be shorter, and which parts a plan has is for the verifier to compare with its event."""
    listed = isinstance(path[-1], int) and path[1] != "unprotected" and path[1] != "not_released"
    return listed or (path[:3] == ("predicate", "mechanism", "plan") and path[3:] in (("class_shares",), ("mean",), ("structure",)))


def mutants(statement):
    for path in places(statement):
        found = at(statement, path)
        if isinstance(found, dict):
            more = copy.deepcopy(statement)
            at(more, path)["extra"] = 1
            yield path, "an unknown field", more
        if not path:
            continue
        if not may_be_absent(path):
            less = copy.deepcopy(statement)
            del at(less, path[:-1])[path[-1]]
            yield path, "a missing field", less
        for other in (None, True, "\n", -1.5, [], {}):
            if type(other) is type(found) and not isinstance(found, str):
                continue
            if isinstance(other, float) and isinstance(found, int) and not isinstance(found, bool):
                other = 0.5
            if isinstance(found, float) and isinstance(other, float) or found is None and other is None:
                continue
            changed = copy.deepcopy(statement)
            at(changed, path[:-1])[path[-1]] = other
            yield path, "%r instead" % (other,), changed


def main(schema_file, *certificates):
    with open(schema_file, encoding="utf-8") as file:
        schema = json.load(file)
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    made = 0
    for certificate in certificates:
        with open(certificate, encoding="utf-8") as file:
            statement = json.loads(base64.b64decode(json.load(file)["payload"]))
        for error in validator.iter_errors(statement):
            sys.exit("%s: %s: %s" % (certificate, list(error.absolute_path), error.message))
        for path, what, mutant in mutants(statement):
            made += 1
            if validator.is_valid(mutant):
                sys.exit("%s: %s at %s is accepted" % (certificate, what, path))
    print("%d certificates valid, %d mutants refused" % (len(certificates), made))


if __name__ == "__main__":
    main(*sys.argv[1:])
