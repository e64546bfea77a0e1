r"""People's files as text: what they say, and where in the file it stands.

A format is a file of this folder. All but plain text are parsed by a process apart (`apart`), with
limits on time and memory, so that a file made to harm, or just broken, is an error and no more.

Examples:
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name, "notes.txt")
    >>> _ = file.write_text("The mill.\n\nIt was closed in 1931.")
    >>> document = read_document(file)
    >>> str(document.place(document.text.index("1931")))
    'line 3'
    >>> folder.cleanup()
"""

from longbird.applications.documents.document import Document, Place
from longbird.applications.documents.errors import UnreadableError
from longbird.applications.documents.file_reader import read_document, read_documents
from longbird.applications.documents.separate_process import Limits

__all__ = ["Document", "Limits", "Place", "UnreadableError", "read_document", "read_documents"]
