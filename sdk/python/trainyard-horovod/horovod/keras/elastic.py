"""As horovod.tensorflow.keras.elastic."""

# All of its names: this module is another one for it.
from horovod.tensorflow.keras.elastic import *  # noqa: F403
