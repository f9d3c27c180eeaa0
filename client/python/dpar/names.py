"""Resource names: tenants/{tenant}/datasets/{dataset} and the like. An id is enough where the token has a tenant."""
from __future__ import annotations

import re
from typing import Any

from dpar import errors

_ID = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


def invalid(field: str, message: str) -> errors.Error:
    """The exception for an argument that cannot be used."""
    return errors.InvalidField(message, code="INVALID_ARGUMENT", metadata={"field": field})


def text_of(resource: Any) -> str:
    """The name of a resource, given by its name, its id or an object that has a `name`."""
    name = resource if isinstance(resource, str) else getattr(resource, "name", None)
    if not isinstance(name, str) or not name:
        raise invalid("name", f"a name, an id or an object with a name is needed, not {type(resource).__name__}")
    return name


def resource_name(collection: str, resource: Any, tenant: str) -> str:
    """The full name in a collection such as "datasets".

    >>> resource_name("jobs", "j1", "tenants/acme")
    'tenants/acme/jobs/j1'
    """
    text, kind = text_of(resource), collection[:-1]
    if "/" not in text:
        if not _ID.fullmatch(text):
            raise invalid(
                kind, f"{text!r} is not an id: 1 to 63 characters of [a-z0-9-], a letter or digit at each end"
            )
        if not tenant:
            raise invalid(
                kind,
                "this token belongs to no tenant, so an id is not enough: give the full name "
                f"tenants/TENANT/{collection}/{text}",
            )
        return f"{tenant}/{collection}/{text}"
    parts = text.split("/")
    if len(parts) != 4 or parts[0] != "tenants" or parts[2] != collection:
        raise invalid(kind, f"{text!r} is not the name of a {kind}: give its id, or tenants/TENANT/{collection}/ID")
    return text


def tenant_name(tenant: str) -> str:
    """tenants/ID, of an id or of that name itself."""
    return tenant if tenant.startswith("tenants/") else f"tenants/{tenant}"


def tenant_of(name: str) -> str:
    """tenants/ID of a full resource name."""
    return "/".join(name.split("/")[:2])


def id_of(name: str) -> str:
    """The last part of a full resource name."""
    return name.rsplit("/", 1)[-1]
