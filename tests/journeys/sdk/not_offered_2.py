"""Uses operations of the SageMaker Python SDK 2 that this server does not offer: a part of
features_2."""

import sagemaker
from sagemaker.experiments import Run
from sagemaker.feature_store.feature_definition import StringFeatureDefinition
from sagemaker.feature_store.feature_group import FeatureGroup
from sagemaker.model import Model

from tests.journeys.sdk import common
from tests.journeys.sdk.common import IMAGE, ROLE, Outcome, feature, refused


def session() -> sagemaker.Session:
    return common.of_thread("session", lambda: sagemaker.Session(common.boto_session()))


@feature("experiments")
def _() -> Outcome:
    return refused(lambda: Run("experiment", "run", sagemaker_session=session()))


@feature("feature store")
def _() -> Outcome:
    group = FeatureGroup("g", session(), [StringFeatureDefinition("id")])
    return refused(lambda: group.create(False, "id", "at", role_arn=ROLE, enable_online_store=True))


@feature("model registry")
def _() -> Outcome:
    model = Model(IMAGE, "s3://data/m.tar.gz", ROLE, sagemaker_session=session())
    return refused(lambda: model.register(["text/csv"], ["text/csv"], model_package_group_name="g"))
