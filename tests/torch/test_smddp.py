"""Tests scripts of SageMaker's data parallel library, by what they import."""

import importlib.util

from tests.torch import ranks


def test_its_backend_and_the_imports_of_its_first_versions() -> None:
    assert importlib.util.find_spec("smdistributed")
    from smdistributed.dataparallel import exceptions

    assert issubclass(exceptions.SMDDPConfigurationError, exceptions.SMDDPError)
    assert ranks.run("smddp", 2) == [[0, 3.0], [1, 3.0]]
