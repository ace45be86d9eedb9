"""Large payloads, beside the journal: objects named <run>/<sha256>, put before their entry is committed."""

import os
from collections.abc import Iterator
from datetime import timedelta
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse
from uuid import UUID

import obstore
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError
from obstore.store import LocalStore, from_url

from journal.defaults import NO_STORE, STORE_HINT
from journal.encoding import decode, encode
from journal.errors import PayloadAltered, PayloadMissing, PayloadStoreDown
from journal.tags import Pointer, is_well_formed

__all__ = ["PayloadStore", "Pointer", "payload_store", "pointers_in"]

BYTES, TEXT, ENCODED = "application/octet-stream", "text/plain; charset=utf-8", "application/vnd.holdfast+json"
_WORTH_A_POINTER = 400  # bytes; a pointer itself takes about 300


@cache
def payload_store() -> "PayloadStore":
    """The process's store, from HOLDFAST_STORE_URL or the data folder. Raises ImproperlyConfigured without both."""
    if not (settings.HOLDFAST_STORE_URL or settings.HOLDFAST_DATA):
        raise ImproperlyConfigured(f"{NO_STORE} {STORE_HINT}")
    folder = Path(settings.HOLDFAST_DATA).resolve() / "payloads"
    return PayloadStore(settings.HOLDFAST_STORE_URL or folder.as_uri(), settings.HOLDFAST_PAYLOAD_LIMIT)


class PayloadStore:
    """`url`: file:///folder, s3://bucket/prefix or what obstore knows. `limit`: bytes a body may have in its entry."""

    def __init__(self, url: str, limit: int = 32_768) -> None:
        self.url, self.limit = url.rstrip("/"), limit
        self._folder = Path(unquote(urlparse(url).path)) if url.startswith("file:") else None
        if self._folder is not None:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._store: Any = LocalStore(self._folder)
        else:
            retry: Any = {"max_retries": 3, "retry_timeout": timedelta(seconds=10)}
            self._store = from_url(url, client_options={"timeout": timedelta(seconds=30)}, retry_config=retry)

    def offload(self, run_id: UUID, body: dict[str, Any]) -> dict[str, Any]:
        """The body with its largest values replaced by pointers until it is within the limit (or nothing is left that
        a pointer would shorten). Raises PayloadStoreDown; what was put then may be put again."""
        body = dict(body)
        sizes = {key: len(encode(value)) for key, value in body.items() if type(value) is not Pointer}
        while sizes and len(encode(body)) > self.limit:
            largest = max(sizes, key=lambda key: sizes[key])
            if sizes.pop(largest) < _WORTH_A_POINTER:
                break
            body[largest] = self.put(run_id, body[largest])
        return body

    def put(self, run_id: UUID, value: object) -> Pointer:
        """Stores one value: bytes and text as they are, others encoded. It is on the disk when this returns."""
        return self._keep(run_id, *_as_bytes(value))

    def copy(self, pointer: Pointer, run_id: UUID) -> Pointer:
        """The same value beside another run's journal. Raises as `load`."""
        return self._keep(run_id, self.open(pointer), pointer.media_type)

    def _keep(self, run_id: UUID, data: bytes, media_type: str) -> Pointer:
        digest = sha256(data).hexdigest()
        key = f"{run_id}/{digest}"
        try:
            obstore.put(self._store, key, data, mode="create")
        except AlreadyExistsError:
            pass  # the same content: an attempt before this one
        except (BaseError, OSError) as error:
            raise PayloadStoreDown(f"{self.url}/{key}: {error}") from error
        if self._folder is not None:
            _sync(self._folder / key)
        return Pointer(f"{self.url}/{key}", digest, len(data), media_type)

    def load(self, pointer: Pointer) -> Any:
        """The value. Raises PayloadMissing, PayloadAltered, PayloadStoreDown."""
        data = self.open(pointer)
        if pointer.media_type == BYTES:
            return data
        return data.decode() if pointer.media_type == TEXT else decode(data)

    def open(self, pointer: Pointer) -> bytes:
        """The bytes as stored, their size and digest checked. Raises as `load`."""
        try:
            data = bytes(obstore.get(self._store, self._key(pointer)).bytes())
        except (BaseError, OSError) as error:
            raise self._refusal(pointer, error) from error
        if len(data) != pointer.size or sha256(data).hexdigest() != pointer.sha256:
            raise PayloadAltered(
                f"{pointer.uri}: {len(data)} bytes, expected {pointer.size} with sha256 {pointer.sha256}"
            )
        return data

    def preview(self, pointer: Pointer, size: int = 2_000) -> bytes:
        """The first bytes, unchecked. Raises PayloadMissing, PayloadStoreDown."""
        if not pointer.size:
            return b""
        try:
            return bytes(obstore.get_range(self._store, self._key(pointer), start=0, end=min(size, pointer.size)))
        except (BaseError, OSError) as error:
            raise self._refusal(pointer, error) from error

    def resolve(self, body: dict[str, Any]) -> dict[str, Any]:
        """The body with the values that its pointers stand for. Raises as `load`."""
        if Pointer not in map(type, body.values()):  # 30,000 times at a long resume, nearly always so
            return body
        return {key: self.load(value) if type(value) is Pointer else value for key, value in body.items()}

    def delete(self, pointer: Pointer) -> None:
        """For the erasure of an entry. A missing object is no error."""
        try:
            obstore.delete(self._store, self._key(pointer))
        except (NotFoundError, FileNotFoundError):
            pass
        except (BaseError, OSError) as error:
            raise PayloadStoreDown(f"{pointer.uri}: {error}") from error

    def _key(self, pointer: Pointer) -> str:
        """Run and digest: a store that moved or was restored elsewhere still finds it."""
        run, _, digest = pointer.uri.rpartition("/")
        if digest != pointer.sha256:
            raise PayloadAltered(f"{pointer.uri}: does not end with the digest {pointer.sha256}")
        return f"{run.rpartition('/')[2]}/{digest}"

    def _refusal(self, pointer: Pointer, error: Exception) -> PayloadMissing | PayloadStoreDown:
        if isinstance(error, NotFoundError | FileNotFoundError):
            return PayloadMissing(pointer.uri)
        return PayloadStoreDown(f"{pointer.uri}: {error}")


def pointers_in(value: Any) -> Iterator[Pointer]:
    """All pointers in a decoded body, however deep."""
    if type(value) is Pointer:
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from pointers_in(item)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from pointers_in(item)


def _as_bytes(value: object) -> tuple[bytes, str]:
    if type(value) is bytes:
        return value, BYTES
    if type(value) is str and is_well_formed(value):
        return value.encode(), TEXT
    return encode(value), ENCODED


def _sync(path: Path) -> None:
    """The object store does not: the file, its folder and the folder's name in the store, down to the disk."""
    for place in (path, path.parent, path.parent.parent):
        descriptor = os.open(place, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
