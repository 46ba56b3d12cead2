import json

import pytest

from revar.errors import InputError, MissingExtraError, require_extra


def test_bad_input_is_a_value_error() -> None:
    assert issubclass(InputError, ValueError)


def test_an_installed_module_is_handed_over() -> None:
    assert require_extra("json", "gym") is json


def test_a_missing_module_names_the_command_that_installs_it() -> None:
    with pytest.raises(MissingExtraError) as caught:
        require_extra("a_module_that_is_not_there.part", "gym")
    assert str(caught.value) == (
        "this needs a_module_that_is_not_there: pip install 'revar-rl[gym]'"
    )
    assert isinstance(caught.value, ImportError)
