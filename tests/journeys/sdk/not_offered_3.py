"""Uses operations of the SageMaker Python SDK 3 that this server does not offer: a part of
features_3."""

from sagemaker.core.resources import (
    AutoMLJob,
    Experiment,
    FeatureGroup,
    HyperParameterTuningJob,
    Model,
    ModelPackageGroup,
    Pipeline,
    ProcessingJob,
    TransformJob,
)
from sagemaker.core.shapes import (
    AppSpecification,
    AutoMLChannel,
    AutoMLOutputDataConfig,
    FeatureDefinition,
    HyperParameterTuningJobConfig,
    ProcessingClusterConfig,
    ProcessingResources,
    ResourceLimits,
    TransformDataSource,
    TransformInput,
    TransformOutput,
    TransformResources,
    TransformS3DataSource,
)

from tests.journeys.sdk.common import IMAGE, ROLE, Outcome, feature, refused

DATA = "s3://data/"


@feature("hyperparameter tuning")
def _() -> Outcome:
    config = HyperParameterTuningJobConfig(
        strategy="Random", resource_limits=ResourceLimits(max_parallel_training_jobs=1)
    )
    return refused(
        lambda: HyperParameterTuningJob.create(
            hyper_parameter_tuning_job_name="t", hyper_parameter_tuning_job_config=config
        )
    )


@feature("processing jobs")
def _() -> Outcome:
    cluster = ProcessingClusterConfig(
        instance_count=1, instance_type="ml.m5.large", volume_size_in_gb=1
    )
    return refused(
        lambda: ProcessingJob.create(
            processing_job_name="p",
            processing_resources=ProcessingResources(cluster_config=cluster),
            app_specification=AppSpecification(image_uri=IMAGE),
            role_arn=ROLE,
        )
    )


@feature("models and endpoints")
def _() -> Outcome:
    return refused(lambda: Model.create(model_name="m", execution_role_arn=ROLE))


@feature("batch transform")
def _() -> Outcome:
    source = TransformDataSource(
        s3_data_source=TransformS3DataSource(s3_data_type="S3Prefix", s3_uri=DATA)
    )
    return refused(
        lambda: TransformJob.create(
            transform_job_name="t",
            model_name="m",
            transform_input=TransformInput(data_source=source),
            transform_output=TransformOutput(s3_output_path=DATA),
            transform_resources=TransformResources(instance_type="ml.m5.large", instance_count=1),
        )
    )


@feature("pipelines")
def _() -> Outcome:
    return refused(
        lambda: Pipeline.create(
            pipeline_name="p",
            client_request_token="t" * 32,
            role_arn=ROLE,
            pipeline_definition="{}",
        )
    )


@feature("AutoML")
def _() -> Outcome:
    return refused(
        lambda: AutoMLJob.create(
            auto_ml_job_name="a",
            input_data_config=[AutoMLChannel(target_attribute_name="target")],
            output_data_config=AutoMLOutputDataConfig(s3_output_path=DATA),
            role_arn=ROLE,
        )
    )


@feature("experiments")
def _() -> Outcome:
    return refused(lambda: Experiment.create(experiment_name="e"))


@feature("feature store")
def _() -> Outcome:
    definition = FeatureDefinition(feature_name="id", feature_type="String")
    return refused(
        lambda: FeatureGroup.create(
            feature_group_name="g",
            record_identifier_feature_name="id",
            event_time_feature_name="at",
            feature_definitions=[definition],
        )
    )


@feature("model registry")
def _() -> Outcome:
    return refused(lambda: ModelPackageGroup.create(model_package_group_name="g"))
