"""As horovod.tensorflow.keras.elastic."""

from horovod.tensorflow.keras.elastic import *  # noqa: F401,F403
