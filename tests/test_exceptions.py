"""The exceptions of Longbird, as Python callers see them."""

from __future__ import annotations

import pickle

import pytest

from longbird import errors

BUILT_IN = {
    errors.InvalidValueError: ValueError,
    errors.InvalidTypeError: TypeError,
    errors.InvalidFileError: ValueError,
    errors.MissingFileError: FileNotFoundError,
    errors.ExistingFileError: FileExistsError,
    errors.MissingPackageError: ImportError,
    errors.UnsupportedError: NotImplementedError,
}


@pytest.mark.parametrize("kind", BUILT_IN, ids=lambda kind: kind.__name__)
def test_each_is_caught_as_the_built_in_error_and_keeps_its_parts(
    kind: type[errors.LongbirdError],
) -> None:
    with pytest.raises(BUILT_IN[kind], match="too many") as caught:
        raise kind("too many", received=3, expected="at most 2", remedy="leave one out")
    error = caught.value
    assert str(error) == "too many, expected at most 2, received 3: leave one out"
    assert isinstance(error, errors.LongbirdError)
    assert (error.received, error.expected, error.remedy) == (3, "at most 2", "leave one out")


@pytest.mark.parametrize("kind", BUILT_IN, ids=lambda kind: kind.__name__)
def test_each_can_be_sent_to_another_process(kind: type[errors.LongbirdError]) -> None:
    error = kind(option="heads", received=0, expected="at least 1")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert (str(copy), copy.option) == (str(error), "heads")
