"""An alias of horovod.tensorflow.keras.elastic."""

# The names of horovod.tensorflow.keras.elastic.
from horovod.tensorflow.keras.elastic import *  # noqa: F403
