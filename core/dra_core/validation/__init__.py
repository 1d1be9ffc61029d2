"""The API server's rules for resource.k8s.io objects, offline.

Validators take objects as JSON data in the shape of ``resource.k8s.io/v1`` (other versions are
converted first, as the API server does) and give :class:`~dra_core.validation.problems.Problem`
values with the field paths and error types of the API server; the sentences are our own.
"""
