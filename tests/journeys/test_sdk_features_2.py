"""Tests the features of the SageMaker Python SDK 2 in docs/sdk-features.md."""

import pathlib
from collections.abc import Callable

from tests.journeys import features
from tests.trainyard_server import Server


def test_every_feature_is_as_documented(
    start: Callable[..., Server], tmp_path: pathlib.Path
) -> None:
    features.check(start, tmp_path, 2)
