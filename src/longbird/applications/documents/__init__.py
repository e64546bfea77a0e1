r"""Reading documents: the text of a file, and the place of every character in it.

Each format has a module of its own. All formats but plain text are parsed in a separate process
with limits on time and memory, so that a damaged or hostile file causes an error and nothing else.
Splitting text into sentences and token sequences into windows belongs here too; models do not.

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
from longbird.applications.documents.file_reader import read_document
from longbird.applications.documents.folder_reader import read_documents
from longbird.applications.documents.separate_process import Limits

__all__ = ["Document", "Limits", "Place", "UnreadableError", "read_document", "read_documents"]
