"""The messages of the API, generated from proto/dpar/v1."""
