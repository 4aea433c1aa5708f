"""SageMaker's data parallel library (smdistributed.dataparallel), over Trainyard's collectives."""

__version__ = "2.5.0"  # of the library whose interface this is
