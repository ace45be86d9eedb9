"""What the journal refuses. The docstring is the message; details follow it."""


class JournalError(Exception):
    """The journal refused this."""

    def __init__(self, detail: str = "") -> None:
        self.detail = detail
        super().__init__(detail)

    def __str__(self) -> str:
        said = (type(self).__doc__ or "").strip().splitlines()[0]
        return f"{said} {self.detail}".strip()


class NoSuchRun(JournalError):
    """There is no run with this id."""


class CommitterClosed(JournalError):
    """The committer is closed; whether an append on its way was written is not known."""


class PayloadError(JournalError):
    """A stored payload cannot be used."""


class PayloadMissing(PayloadError):
    """A stored payload is missing."""


class PayloadAltered(PayloadError):
    """A stored payload is not what was written."""


class PayloadStoreDown(PayloadError):
    """The payload store does not answer."""


class NotFinished(JournalError):
    """The run has not ended; nothing of it is erased."""


class NoSuchEntry(JournalError):
    """The run has no such entry."""


class ImportRefused(JournalError):
    """This journal cannot be imported."""


class PrefixErased(JournalError):
    """A part of this journal was erased: it cannot be copied."""


class PrefixDamaged(JournalError):
    """This journal is not what was written: it is not copied. `journal verify` names every fault."""
