"""The desk and the cast of the API's tests: the command line is a second door to the same commands."""

from tests.api.conftest import cast, desk

__all__ = ["cast", "desk"]
