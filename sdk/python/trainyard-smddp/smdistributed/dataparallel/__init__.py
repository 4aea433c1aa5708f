"""What scripts of SageMaker's data parallel library import, over Trainyard's collectives."""

__version__ = "2.5.0"  # the interface that this is
